"""How a soak judges what it saw: a warm-up is no growth, and what grows for good is found."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.soak.held import WARM_UP, Held, grown, growths

ROUNDS = 4 * WARM_UP


def rounds(
    megabytes: Callable[[int], float], count: int = ROUNDS, runtime: Callable[[int], int] = lambda number: 8
) -> list[Held]:
    return [Held(5, megabytes(number), 10, runtime(number), 20, 1000) for number in range(count)]


def test_memory_that_levels_off_has_not_grown() -> None:
    assert grown(rounds(lambda number: 100 + 10 * min(number, WARM_UP)), []) == {}


def test_memory_that_goes_up_and_down_has_not_grown() -> None:
    assert grown(rounds(lambda number: 100 + 10 * (number % 7)), []) == {}


def test_memory_that_never_levels_off_has_grown() -> None:
    assert list(grown(rounds(lambda number: 100 + number), [])) == ["megabytes"]


def test_what_plain_datafusion_grows_by_too_is_not_ours() -> None:
    rising = rounds(lambda number: 100 + number)
    assert grown(rising, rising) == {}


def test_memory_may_grow_with_the_threads_of_datafusion() -> None:
    def threads(number: int) -> int:
        return 8 if number < ROUNDS // 2 else 16

    assert grown(rounds(lambda number: 100 * threads(number), runtime=threads), []) == {}
    faster = rounds(lambda number: 100 * threads(number) ** 1.2, runtime=threads)
    assert list(grown(faster, [])) == ["megabytes"]


def test_more_threads_of_ours_have_grown() -> None:
    left = [Held(5, 100.0, 10 + number, 8, 20, 1000) for number in range(ROUNDS)]
    assert list(grown(left, [])) == ["threads"]


def test_one_file_more_in_each_round_has_grown() -> None:
    left = [Held(number, 100.0, 10, 8, 20, 1000) for number in range(ROUNDS)]
    assert list(grown(left, [])) == ["files"]


def test_a_short_soak_is_not_judged() -> None:
    assert growths(rounds(float, 2 * WARM_UP - 1)) == {}
