"""Random tables: their data, and how they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.kinds import ARROW_TYPES, NESTED, SCALARS, Family, type_source
from tests.fuzz.values import Flavour, column_values

Format = Literal["parquet", "arrow", "csv", "json", "memory"]

# What a text format can hold and give back with the same type, when the schema is given.
_TEXT_FORMAT_TYPES: dict[str, dict[Family, tuple[pa.DataType, ...]]] = {
    "csv": {
        Family.INT: (pa.int64(), pa.int32(), pa.uint8()),
        Family.FLOAT: (pa.float64(),),
        Family.DECIMAL: (pa.decimal128(10, 2),),
        Family.TEXT: (pa.string(), pa.string_view()),
        Family.DATE: (pa.date32(),),
        Family.TIMESTAMP: (pa.timestamp("us"),),
        Family.BOOL: (pa.bool_(),),
    },
    "json": {
        Family.INT: (pa.int64(), pa.int32(), pa.uint8()),
        Family.FLOAT: (pa.float64(),),
        Family.TEXT: (pa.string(), pa.string_view()),
        Family.BOOL: (pa.bool_(),),
        Family.INT_LIST: (pa.list_(pa.int64()),),
        Family.STRUCT: ARROW_TYPES[Family.STRUCT],
    },
}


# Sorted, because drawn values shrink towards the first.
_ROWS = (0, 1, 2, 3, 5, *(8, 13, 20, 30, 40, 60, 60, 150) * 2)


class Registry(Protocol):
    """What takes tables: a sparkfusion session or a DataFusion context."""

    def register_parquet(self, name: str, path: str) -> Any: ...
    def register_arrow(self, name: str, path: str) -> Any: ...
    def register_csv(self, name: str, path: str, schema: pa.Schema | None = None, *, delimiter: str = ",") -> Any: ...
    def register_json(self, name: str, path: str, schema: pa.Schema | None = None) -> Any: ...
    def register_record_batches(self, name: str, partitions: list[list[pa.RecordBatch]]) -> Any: ...


@dataclass(frozen=True)
class Column:
    name: str
    family: Family
    type: pa.DataType


@dataclass(frozen=True)
class Table:
    """A table and how it is stored: `chunks` are the rows of each file (or of each partition in memory).

    Its first column, `id`, is unique and never null; every other column may hold nulls.
    """

    name: str
    columns: tuple[Column, ...]
    data: pa.Table
    format: Format
    chunks: tuple[int, ...]
    row_group: int = 1_000

    def register(self, registry: Registry, directory: Path) -> None:
        """Write the files below `directory` and make the table known under its name."""
        pieces = _split(self.data, self.chunks)
        if self.format == "memory":
            registry.register_record_batches(self.name, [_batches(piece, self.row_group) for piece in pieces])
            return
        folder = directory / self.name
        folder.mkdir()
        for number, piece in enumerate(pieces):
            _write(piece, folder / f"{number}.{self.format}", self.format, self.row_group)
        path = f"{folder}/"
        if self.format == "parquet":
            registry.register_parquet(self.name, path)
        elif self.format == "arrow":
            registry.register_arrow(self.name, path)
        elif self.format == "csv":
            registry.register_csv(self.name, path, self.data.schema, delimiter=";")
        else:
            registry.register_json(self.name, path, self.data.schema)

    def source(self) -> str:
        """A Python expression that makes this table again, for reproducers."""
        lines = [f"    {column.name!r}: pa.array({_cells(self.data, column)}, {type_source(column.type)}),"
                 for column in self.columns]  # fmt: skip
        columns = ", ".join(f"Column({c.name!r}, Family.{c.family.name}, {type_source(c.type)})" for c in self.columns)
        body = "\n".join(lines)
        stored = f"{self.format!r}, {self.chunks!r}, {self.row_group}"
        return f"Table({self.name!r}, ({columns},), pa.table({{\n{body}\n}}), {stored})"


def _cells(data: pa.Table, column: Column) -> str:
    text = repr(data.column(column.name).to_pylist())
    return re.sub(r"\b(nan|inf)\b", r"float('\1')", text) if column.family is Family.FLOAT else text


def _split(data: pa.Table, chunks: Sequence[int]) -> list[pa.Table]:
    pieces, start = [], 0
    for rows in chunks:
        pieces.append(data.slice(start, rows))
        start += rows
    return pieces


def _batches(piece: pa.Table, rows: int) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = piece.combine_chunks().to_batches(max_chunksize=rows)
    return batches or [pa.RecordBatch.from_pylist([], schema=piece.schema)]


def _write(piece: pa.Table, path: Path, format_: Format, row_group: int) -> None:
    if format_ == "parquet":
        pq.write_table(piece, path, row_group_size=row_group)
    elif format_ == "arrow":
        with pa_ipc.new_file(path, piece.schema) as writer:
            for batch in _batches(piece, row_group):
                writer.write_batch(batch)
    elif format_ == "csv":
        pa_csv.write_csv(_without_views(piece), path, pa_csv.WriteOptions(delimiter=";"))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in piece.to_pylist()), encoding="utf-8")


def _without_views(piece: pa.Table) -> pa.Table:
    """The same rows without string views, which the CSV writer does not know."""
    fields = [field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field for field in piece.schema]
    return piece.cast(pa.schema(fields))


@st.composite
def tables(draw: st.DrawFn, name: str) -> Table:
    """A table of that name."""
    format_: Format = draw(st.sampled_from(("parquet",) * 6 + ("memory", "memory", "arrow", "csv", "json")))
    types = _TEXT_FORMAT_TYPES.get(format_, ARROW_TYPES)
    seed = f"{name}/{draw(st.integers(0, 2**32 - 1))}"
    rows = draw(st.sampled_from(_ROWS))
    columns = [Column("id", Family.INT, pa.int64())]
    arrays = {"id": pa.array(range(rows), pa.int64())}
    for number, family in enumerate(draw(_families(tuple(types)))):
        column = Column(f"{family[0]}{number + 1}", family, draw(st.sampled_from(types[family])))
        flavour = draw(_flavours(format_))
        values = column_values(column.type, family, flavour, rows, f"{seed}/{number}")
        columns.append(column)
        arrays[column.name] = _array(values, column.type)
    return Table(name, tuple(columns), pa.table(arrays), format_, draw(_chunks(rows)), draw(st.sampled_from((1000, 7))))


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(values, type_)


@st.composite
def _families(draw: st.DrawFn, allowed: tuple[Family, ...]) -> list[Family]:
    """An integer and a text (most joins and groups are over those), then any others."""
    scalar = [family for family in SCALARS if family in allowed]
    nested = [family for family in NESTED if family in allowed]
    others = draw(st.lists(st.sampled_from(scalar), min_size=0, max_size=4))
    if nested and draw(st.integers(0, 3)) == 3:
        others.append(draw(st.sampled_from(sorted(nested))))
    return [Family.INT, Family.TEXT, *others]


@st.composite
def _flavours(draw: st.DrawFn, format_: Format) -> Flavour:
    return Flavour(
        pool=draw(st.sampled_from((4, 2, 1, 8, 20))),
        null_share=draw(st.sampled_from((0.0, 0.0, 0.1, 0.1, 0.1, 0.3, 0.3, 1.0))),
        skewed=draw(st.booleans()),
        special="" if format_ in ("csv", "json") else draw(st.sampled_from(("", "", "nan", "inf", "zero"))),
    )


@st.composite
def _chunks(draw: st.DrawFn, rows: int) -> tuple[int, ...]:
    """One to seven files; some may be empty."""
    count = draw(st.integers(1, 7))
    cuts = sorted(draw(st.lists(st.integers(0, rows), min_size=count - 1, max_size=count - 1)))
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, rows], strict=True))
