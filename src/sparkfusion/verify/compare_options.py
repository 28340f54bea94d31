"""How strictly two answers are compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CompareOptions:
    """What counts as the same answer. The defaults are strict in everything but the last digits of floats.

    `relative_tolerance` is for 64-bit floats; narrower floats get at least four units in their last place.
    `absolute_tolerance` is off: with it, columns of very small numbers would always match. Turn it on for sums that
    cancel out to almost zero. `unordered_lists` compares lists as multisets, for `array_agg` without an order.
    `max_differences` bounds how many differing rows are written out; all of them are counted.
    """

    relative_tolerance: float = 1e-9
    absolute_tolerance: float = 0.0
    unordered_lists: bool = False
    check_nullability: bool = False
    max_differences: int = 5
