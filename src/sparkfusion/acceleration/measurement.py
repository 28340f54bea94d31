"""Measure how long a query takes in Spark and in sparkfusion."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """The times of a query in Spark and in sparkfusion, in seconds, one for each round.

    >>> print(Measurement(spark=(4.0, 3.0), sparkfusion=(2.0, 1.5)))
    Spark 3.00 s, sparkfusion 1.50 s: 2.0 times faster (best of 2 rounds)
    """

    spark: tuple[float, ...]
    sparkfusion: tuple[float, ...]

    @property
    def speed_up(self) -> float:
        """How many times as fast as Spark sparkfusion was, in the best round of each. Less than 1 means that it was
        slower."""
        return min(self.spark) / min(self.sparkfusion)

    def __str__(self) -> str:
        ratio = self.speed_up
        words = f"{ratio:.1f} times faster" if ratio >= 1 else f"{1 / ratio:.1f} times slower"
        rounds = len(self.spark)
        best = f"best of {rounds} rounds" if rounds > 1 else "one round"
        return f"Spark {min(self.spark):.2f} s, sparkfusion {min(self.sparkfusion):.2f} s: {words} ({best})"


def measure_in_turn(spark: Callable[[], object], sparkfusion: Callable[[], object], rounds: int) -> Measurement:
    """Run both in turn, so that other load of the machine affects both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for run, seconds in zip((spark, sparkfusion), times, strict=True):
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
    return Measurement(tuple(times[0]), tuple(times[1]))
