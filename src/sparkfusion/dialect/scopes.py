"""The columns that are visible in a part of a query, and their names in the text for DataFusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sparkfusion.dialect.refusals import wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import cast_sql

EXPLODED = "__exploded"
"""The name of the columns that `explode` in a select list makes; `*` does not list them."""

_SHOWN = 8


@dataclass(frozen=True)
class VisibleColumn:
    """A column: its name in the query, and its text with its type."""

    name: str
    typed: Typed


@dataclass(frozen=True)
class FromRelation:
    """A table, view or subquery in FROM. `names` are the parts of its name, the last one is the alias."""

    names: tuple[str, ...]
    columns: tuple[VisibleColumn, ...]

    def is_called(self, parts: Sequence[str]) -> bool:
        return _same(self.names[-len(parts) :], parts)


@dataclass
class Scope:
    """The columns that an expression may name; those of the surrounding query are searched last.

    Attributes:
        merged: columns of USING, which have no relation.
        aliases: columns of the select list that later ones may name.
    """

    relations: list[FromRelation] = field(default_factory=list)
    merged: list[VisibleColumn] = field(default_factory=list)
    outer: Scope | None = None
    aliases: dict[str, Typed] = field(default_factory=dict)

    def find(self, parts: Sequence[str]) -> tuple[Typed, Sequence[str]]:
        """The column that a dotted name stands for, and the names of struct fields after it."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._find_here(parts)
            if found is not None:
                return found
            scope = scope.outer
        known = [column.name for column in self.columns()]
        shown = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
        raise wrong(f"column {'.'.join(parts)!r} not found", f"known columns: {shown}" if known else None)

    def _find_here(self, parts: Sequence[str]) -> tuple[Typed, Sequence[str]] | None:
        for length in range(min(len(parts) - 1, 3), 0, -1):
            for relation in self.relations:
                if len(relation.names) >= length and relation.is_called(parts[:length]):
                    found = _columns_of_name(relation.columns, parts[length])
                    if found:
                        return _only(found, parts), parts[length + 1 :]
        found = _columns_of_name(self.merged, parts[0]) or _columns_of_name(self._of_relations(), parts[0])
        if found:
            return _only(found, parts), parts[1:]
        alias = self.aliases.get(parts[0].lower())
        return None if alias is None else (alias, parts[1:])

    def _of_relations(self) -> Iterator[VisibleColumn]:
        for relation in self.relations:
            yield from relation.columns

    def columns(self) -> list[VisibleColumn]:
        """All columns as `*` lists them: those of USING first."""
        hidden = {column.name.lower() for column in self.merged}
        shown = [relation for relation in self.relations if relation.names != (EXPLODED,)]
        others = [column for relation in shown for column in relation.columns]
        return [*self.merged, *(each for each in others if each.name.lower() not in hidden)]

    def columns_of(self, parts: Sequence[str]) -> list[VisibleColumn] | None:
        """All columns of one relation, for `t.*`; None if there is none of this name."""
        for relation in self.relations:
            if len(relation.names) >= len(parts) and relation.is_called(parts):
                return list(relation.columns)
        return None


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def relation_of(alias: str, names: tuple[str, ...], columns: Sequence[tuple[str, str, pa.DataType]]) -> FromRelation:
    """A relation with the name `alias` in the text. Each of its columns has a name in the query, and a name in the
    text."""
    return FromRelation(
        names, tuple(VisibleColumn(name, _column(f"{quote(alias)}.{quote(own)}", kind)) for name, own, kind in columns)
    )


def _column(sql: str, kind: pa.DataType) -> Typed:
    """A column. One with a dictionary type, such as a partition column of files, is cast to plain values."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return Typed(sql if plain is kind else cast_sql(sql, plain), plain)


def _columns_of_name(columns: Sequence[VisibleColumn] | Iterator[VisibleColumn], name: str) -> list[VisibleColumn]:
    return [column for column in columns if column.name.lower() == name.lower()]


def _only(found: list[VisibleColumn], parts: Sequence[str]) -> Typed:
    if len(found) > 1:
        raise wrong(f"column {'.'.join(parts)!r} is ambiguous", "write the name of its table before it")
    return found[0].typed


def _same(left: Sequence[str], right: Sequence[str]) -> bool:
    return [each.lower() for each in left] == [each.lower() for each in right]
