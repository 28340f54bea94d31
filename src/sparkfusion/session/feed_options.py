"""The user's arguments for a feed, checked, and completed by the attributes of its provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import Reader, WorkUnitFeedProvider
from sparkfusion.formats import FORMATS
from sparkfusion.session.lossy import lost_options


@dataclass(frozen=True)
class FeedArguments:
    """The arguments of `Session.register_feed`, which says what they mean."""

    schema: pa.Schema | None
    format: str | None = None
    reader: Reader | None = None
    partition_columns: Sequence[str | tuple[str, pa.DataType]] = ()
    partitions: int | None = None
    tasks: int | None = None
    rows: int | None = None
    bytes: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FeedOptions(FeedArguments):
    """A registered feed. Without a format, `reader` turns its units into rows.

    Attributes:
        scan_options: `datafusion.*` options for its scans, instead of the session's.
    """

    schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    scan_options: Mapping[str, str] = field(default_factory=dict)


def resolve(name: str, provider: WorkUnitFeedProvider, said: FeedArguments) -> FeedOptions:
    """The options of the feed: the arguments, otherwise attributes of the provider. A `UserError` names the table."""
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
    sizes = {attribute: choose(attribute) for attribute in ("partitions", "tasks", "rows", "bytes")}
    for attribute, value in sizes.items():
        _check_count(name, attribute, value, least=1 if attribute in ("partitions", "tasks") else 0)
    schema = said.schema if said.schema is not None else _own_schema(name, provider)
    schema, partition_columns = _with_partition_columns(name, schema, columns)
    if partition_columns and format is None:
        raise UserError(f"cannot register feed {name!r}: partition columns are for feeds of files")
    return FeedOptions(schema, format, reader, partition_columns, **sizes, headers=said.headers, options=said.options)


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
    own = [_partition_field(name, schema, each) for each in columns]
    names = {each.name for each in own}
    twice = {column for column in schema.names if schema.names.count(column) > 1}
    if twice:
        raise UserError(f"cannot register feed {name!r}: its schema has column {', '.join(sorted(twice))} twice")
    fields = [each for each in schema if each.name not in names] + own
    return pa.schema([each.with_nullable(True) for each in fields]), tuple(each.name for each in own)


def _partition_field(name: str, schema: pa.Schema, column: Any) -> pa.Field:
    if isinstance(column, str):
        if column not in schema.names:
            raise UserError(f"cannot register feed {name!r}: partition column {column!r} is not in its schema")
        return schema.field(column)
    try:
        label, kind = column
        return pa.field(label, kind)
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(
            f"cannot register feed {name!r}: partition column {column!r} is neither a name nor a name and a type"
        ) from error


def _check_count(name: str, attribute: str, value: Any, *, least: int) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise UserError(
            f"cannot register feed {name!r}: {attribute} must be a whole number of at least {least}, not {value!r}"
        )
