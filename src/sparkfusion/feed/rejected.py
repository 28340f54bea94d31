"""Lines that a reader skipped because it cannot read them: how many, and the first of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

MOST_SHOWN = 5


@dataclass(frozen=True, order=True)
class RejectedLine:
    """One skipped line. `line` counts from 1; `text` is shortened."""

    file: str
    line: int
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.file!r}, line {self.line}: {self.why}: {self.text!r}"


@dataclass(frozen=True)
class Rejected:
    """The skipped lines of one table.

    Attributes:
        first: a few of them, the first by file and line.
    """

    table: str
    count: int
    first: tuple[RejectedLine, ...]


class Rejects:
    """Collects the lines that one attempt at a task skips. Used by one thread."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[RejectedLine] = []

    def add(self, line: RejectedLine) -> None:
        self._count += 1
        self._first = heapq.nsmallest(MOST_SHOWN, (*self._first, line))

    def of_table(self, table: str) -> Rejected | None:
        return Rejected(table, self._count, tuple(self._first)) if self._count else None


def add_up(parts: Iterable[Rejected]) -> list[Rejected]:
    """The skipped lines of several tasks, combined by table."""
    tables: dict[str, list[Rejected]] = {}
    for part in parts:
        tables.setdefault(part.table, []).append(part)
    return [
        Rejected(
            table,
            sum(part.count for part in own),
            tuple(heapq.nsmallest(MOST_SHOWN, (line for part in own for line in part.first))),
        )
        for table, own in sorted(tables.items())
    ]
