"""The user's arguments for a feed, checked, and completed by the attributes of its provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import Reader, WorkUnitFeedProvider
from sparkfusion.session.lossy import lost_options

FORMATS = ("parquet", "csv", "json", "arrow", "avro")


@dataclass(frozen=True)
class FeedArguments:
    """The arguments of `Session.register_feed`, which says what they mean."""

    schema: pa.Schema | None
    format: str | None
    reader: Reader | None
    partition_columns: Sequence[str | tuple[str, pa.DataType]]
    partitions: int | None
    tasks: int | None
    rows: int | None
    bytes: int | None
    headers: Mapping[str, str]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class FeedOptions:
    """A registered feed. Without a format, `reader` turns its units into rows."""

    schema: pa.Schema
    format: str | None
    reader: Reader | None
    partition_columns: tuple[str, ...]
    partitions: int | None
    tasks: int | None
    rows: int | None
    bytes: int | None
    headers: Mapping[str, str]
    options: Mapping[str, Any]


def resolve(name: str, provider: WorkUnitFeedProvider, said: FeedArguments) -> FeedOptions:
    """The options of the feed: the arguments, otherwise the attributes of the provider. A `UserError` names the
    table."""
    if not callable(getattr(provider, "feed", None)):
        raise UserError(f"cannot register feed {name!r}: a {type(provider).__qualname__} has no feed() method")

    def choose(attribute: str) -> Any:
        own = getattr(said, attribute)
        return own if own is not None else getattr(provider, attribute, None)

    format, reader = said.format, said.reader
    if format is None and reader is None:
        format, reader = getattr(provider, "format", None), getattr(provider, "reader", None)
    if (format is None) == (reader is None):
        what = "a format (for files) or a reader (for other units)"
        raise UserError(f"cannot register feed {name!r}: it needs {what}, and not both")
    if format is not None and format not in FORMATS:
        raise UserError(f"cannot register feed {name!r}: no format {format!r}", hint=f"one of {', '.join(FORMATS)}")
    if reader is not None and not callable(reader):
        raise UserError(f"cannot register feed {name!r}: the reader is a {type(reader).__qualname__}, not a function")
    if reader is not None and said.options:
        raise UserError(f"cannot register feed {name!r}: a reader takes no option {', '.join(map(repr, said.options))}")
    lost = lost_options({"options": None, **said.options})
    if lost is not None:
        raise UserError(f"cannot register feed {name!r}: {lost} cannot be sent to workers")
    columns = said.partition_columns or getattr(provider, "partition_columns", ())
    for attribute in ("partitions", "tasks", "rows", "bytes"):
        _check_count(name, attribute, choose(attribute), least=1 if attribute in ("partitions", "tasks") else 0)
    schema = said.schema if said.schema is not None else _own_schema(name, provider)
    schema, partition_columns = _with_partition_columns(name, schema, columns)
    if partition_columns and format is None:
        raise UserError(f"cannot register feed {name!r}: partition columns are for feeds of files")
    partitions, tasks = choose("partitions"), choose("tasks")
    return FeedOptions(
        schema=schema,
        format=format,
        reader=reader,
        partition_columns=partition_columns,
        partitions=partitions,
        tasks=tasks,
        rows=choose("rows"),
        bytes=choose("bytes"),
        headers=said.headers,
        options=said.options,
    )


def _own_schema(name: str, provider: WorkUnitFeedProvider) -> pa.Schema:
    own = getattr(provider, "schema", None)
    found = own() if callable(own) else own
    if found is None:
        raise UserError(f"cannot register feed {name!r}: it needs a schema", hint="pass schema=pyarrow.schema([…])")
    return found


def _with_partition_columns(
    name: str, schema: pa.Schema, columns: Sequence[str | tuple[str, pa.DataType]]
) -> tuple[pa.Schema, tuple[str, ...]]:
    """The schema with its partition columns at the end. Every column may have NULLs: files may lack some columns."""
    if not isinstance(schema, pa.Schema):
        raise UserError(f"cannot register feed {name!r}: the schema is a {type(schema).__qualname__}, not pyarrow's")
    own: list[pa.Field] = []
    for each in columns:
        if isinstance(each, str):
            if each not in schema.names:
                raise UserError(f"cannot register feed {name!r}: partition column {each!r} is not in its schema")
            own.append(schema.field(each))
        else:
            own.append(_partition_field(name, each))
    names = {field.name for field in own}
    twice = {column for column in schema.names if schema.names.count(column) > 1}
    if twice:
        raise UserError(f"cannot register feed {name!r}: its schema has column {', '.join(sorted(twice))} twice")
    fields = [field for field in schema if field.name not in names] + own
    return pa.schema([field.with_nullable(True) for field in fields]), tuple(field.name for field in own)


def _partition_field(name: str, column: Any) -> pa.Field:
    try:
        label, kind = column
        return pa.field(label, kind)
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(
            f"cannot register feed {name!r}: partition column {column!r} is neither a name nor a name and a type"
        ) from error


def _check_count(name: str, attribute: str, value: Any, *, least: int) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise UserError(f"cannot register feed {name!r}: {attribute} is {value!r}, not a number from {least}")
