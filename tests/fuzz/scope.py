"""What query writers pass around: fields that can be named, sources to select from, and the pen that draws choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from hypothesis import strategies as st

from tests.fuzz.kinds import NESTED, Family
from tests.fuzz.tables import Table

T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A column that an expression can name: `ref` is how."""

    ref: str
    family: Family
    unsigned: bool = False

    @property
    def name(self) -> str:
        return self.ref.rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Source:
    """Something to put after FROM.

    Rows that agree in the fields named by `key` agree in all fields, so an order by these is total up to rows that
    nobody can tell apart. `rows` is an estimate from above that keeps joins small.
    """

    sql: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    rows: int

    def of(self, *families: Family) -> list[Field]:
        return [found for found in self.fields if found.family in families]

    @property
    def total(self) -> list[Field]:
        """The fields of the key."""
        return [found for found in self.fields if found.ref in self.key]

    @property
    def scalars(self) -> list[Field]:
        return [found for found in self.fields if found.family not in NESTED]


@dataclass(frozen=True)
class Query:
    """A SELECT and the columns it returns. A `closed` one has its ORDER BY already."""

    sql: str
    columns: tuple[Field, ...]
    key: tuple[str, ...]
    rows: int
    closed: bool = False


@dataclass
class Pen:
    """Draws every choice of one case and remembers which features it used. Choices shrink towards the first, and no."""

    draw: st.DrawFn
    tables: Sequence[Table]
    features: set[str] = field(default_factory=set)
    _names: int = 0

    def pick(self, choices: Sequence[T]) -> T:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(1, 100)) > 100 - percent

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def some(self, choices: Sequence[T], low: int, high: int) -> list[T]:
        """Different ones, in drawn order."""
        high = min(high, len(choices))
        positions = st.lists(st.integers(0, len(choices) - 1), min_size=min(low, high), max_size=high, unique=True)
        return [choices[position] for position in self.draw(positions)]

    def one_of(self, writers: Sequence[tuple[int, Callable[[], T]]]) -> T:
        """Call one of the writers, chosen by weight."""
        weighted = [writer for weight, writer in writers for _ in range(weight)]
        return self.pick(weighted)()

    def order(self, terms: Sequence[Field]) -> str:
        """ORDER BY terms with drawn directions.

        Grouping keeps any one of 0.0 and -0.0, but sorting tells them apart; adding 0.0 makes both the same.
        """
        directions = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        refs = [
            f"{term.ref} + 0.0" if term.family is Family.FLOAT and self.signed_zeros else term.ref for term in terms
        ]
        return ", ".join(f"{ref}{self.pick(directions)}" for ref in refs)

    @cached_property
    def signed_zeros(self) -> bool:
        """Whether a table holds -0.0."""
        return any(
            value == 0.0 and math.copysign(1.0, value) < 0
            for table in self.tables
            for column in table.columns
            if column.family is Family.FLOAT
            for value in table.data.column(column.name).to_pylist()
        )

    def fresh(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def note(self, *features: str) -> None:
        self.features.update(features)


def table_source(table: Table, alias: str) -> Source:
    """A table under an alias."""
    fields = tuple(
        Field(f"{alias}.{column.name}", column.family, unsigned=str(column.type).startswith("uint"))
        for column in table.columns
    )
    sql = table.name if alias == table.name else f"{table.name} AS {alias}"
    return Source(sql, fields, (f"{alias}.id",), table.data.num_rows)


def query_source(query: Query, alias: str) -> Source:
    """A query in parentheses under an alias."""
    return Source(
        f"({query.sql}) AS {alias}",
        tuple(Field(f"{alias}.{column.name}", column.family, column.unsigned) for column in query.columns),
        tuple(f"{alias}.{name.rsplit('.', 1)[-1]}" for name in query.key),
        query.rows,
    )
