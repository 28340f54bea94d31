"""Try many cases: each from a seed of its own, each failure shrunk by hypothesis and shown as a program."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir

from tests.fuzz.case import Case, cases


@dataclass(frozen=True)
class Failure:
    """What is left of a failing case after shrinking."""

    seed: int
    case: Case
    error: BaseException

    def __str__(self) -> str:
        kind = type(self.error).__name__
        return f"seed {self.seed}: {kind}: {self.error}\n\n--- to run it again ---{self.case.program()}"


def explore(first_seed: int, count: int, check: Callable[[Case], None], *, max_failures: int = 3) -> list[Failure]:
    """Call `check` with the cases of `count` seeds; stop after `max_failures` failures.

    Hypothesis spends most of a long run on variations of what it has already drawn (126 different statements in 400
    measured). So every seed is a run of its own, of two examples: the simplest one, which is not worth checking
    again and again, and a random one.
    """
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory() as directory:
        set_hypothesis_home_dir(directory)  # else it writes to the current directory, even without a database
        for number in range(first_seed, first_seed + count):
            failure = try_seed(number, check)
            if failure is not None:
                failures.append(failure)
            if len(failures) >= max_failures:
                break
        set_hypothesis_home_dir(None)
    return failures


def try_seed(number: int, check: Callable[[Case], None]) -> Failure | None:
    """The case of one seed: nothing if it is right, else its shrunk form."""
    tried: list[Case] = []

    @seed(number)
    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=tuple(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    @given(cases())
    def run(case: Case) -> None:
        tried.append(case)
        if len(tried) > 1:
            check(case)

    try:
        run()
    except Exception as error:
        return Failure(number, tried[-1], error)
    return None
