"""Pair rows that differ only in floats: a multiset matching with tolerance."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import copysign

from sparkfusion.verify.encode import Floats

WORK_LIMIT = 5_000_000
"""The most row comparisons for one group of rows; far more than usual float noise needs."""


@dataclass(frozen=True)
class Closeness:
    """Decides whether the floats of two rows are equal, with a relative tolerance for each float of the row."""

    relative: Floats
    absolute: float

    def __call__(self, left: Floats, right: Floats) -> bool:
        for a, b, relative in zip(left, right, self.relative, strict=True):
            if a != b and abs(a - b) > relative * max(abs(a), abs(b)) + self.absolute:
                return False
        return True

    def reach(self, value: float, column: int) -> float:
        """The largest distance of a close number from `value`. It is slightly too large; the exact check follows."""
        relative = self.relative[column]
        return (relative * abs(value) / max(1.0 - relative, 0.5) + self.absolute) * 1.0001


@dataclass
class Pairing:
    """Which rows have a partner, how many floats needed tolerance, and the largest relative error."""

    tolerated: int = 0
    worst: float = 0.0
    left_over: list[int] = field(default_factory=list)
    right_over: list[int] = field(default_factory=list)
    gave_up: bool = False

    def count(self, left: Floats, right: Floats) -> None:
        for a, b in zip(left, right, strict=True):
            if a != b:
                self.tolerated += 1
                self.worst = max(self.worst, abs(a - b) / max(abs(a), abs(b)))
            elif a == 0.0 and copysign(1.0, a) != copysign(1.0, b):
                self.tolerated += 1


def pair(left: Sequence[Floats], right: Sequence[Floats], close: Closeness) -> Pairing:
    """Pair as many rows as possible; the result holds the positions of those without a partner.

    Sorting both sides and pairing row by row almost always works. Where it does not (noise swapped two rows, or a row
    is really different), a maximum matching decides, so that a wrong early choice never makes a right answer look
    wrong.
    """
    left_order = sorted(range(len(left)), key=lambda row: left[row])
    right_order = sorted(range(len(right)), key=lambda row: right[row])
    if len(left) == len(right):
        aligned = list(zip(left_order, right_order, strict=True))
        if all(close(left[a], right[b]) for a, b in aligned):
            result = Pairing()
            for a, b in aligned:
                result.count(left[a], right[b])
            return result
    return _Matching(left, right, close).run(left_order)


class _Matching:
    """Kuhn's augmenting paths over the rows within reach on the most telling float column."""

    def __init__(self, left: Sequence[Floats], right: Sequence[Floats], close: Closeness) -> None:
        self.left, self.right, self.close = left, right, close
        self.column = _most_telling_column(right)
        self.sorted_rows = sorted(range(len(right)), key=lambda row: right[row][self.column])
        self.sorted_values = [right[row][self.column] for row in self.sorted_rows]
        self.left_of: dict[int, int] = {}
        self.right_of: dict[int, int] = {}
        self.work = 0

    def run(self, left_order: Sequence[int]) -> Pairing:
        result = Pairing()
        result.left_over = [row for row in left_order if not self._place(row)]
        result.right_over = [row for row in range(len(self.right)) if row not in self.left_of]
        result.gave_up = self.work > WORK_LIMIT
        for a, b in self.right_of.items():
            result.count(self.left[a], self.right[b])
        return result

    def _candidates(self, row: int) -> list[int]:
        value = self.left[row][self.column]
        reach = self.close.reach(value, self.column)
        first = bisect_left(self.sorted_values, value - reach)
        last = bisect_right(self.sorted_values, value + reach)
        self.work += last - first
        if self.work > WORK_LIMIT:
            return []
        return [other for other in self.sorted_rows[first:last] if self.close(self.left[row], self.right[other])]

    def _place(self, row: int) -> bool:
        """Breadth-first: the shortest chain of moves that frees a partner for `row`."""
        came_from: dict[int, int] = {}
        queue = [row]
        for current in queue:
            for other in self._candidates(current):
                if other in came_from:
                    continue
                came_from[other] = current
                if other not in self.left_of:
                    self._move_along(other, came_from)
                    return True
                queue.append(self.left_of[other])
        return False

    def _move_along(self, free: int, came_from: dict[int, int]) -> None:
        step: int | None = free
        while step is not None:
            current = came_from[step]
            before = self.right_of.get(current)
            self.left_of[step], self.right_of[current] = current, step
            step = before


def _most_telling_column(rows: Sequence[Floats]) -> int:
    """The column with the most values that differ by more than noise: the fewest rows are within its reach."""
    return max(range(len(rows[0])), key=lambda column: len({f"{row[column]:.6e}" for row in rows}))
