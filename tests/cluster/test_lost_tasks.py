"""A task fails, its Python worker is killed, or a copy of it overtakes it: the answer is as if nothing had been."""

from __future__ import annotations

import pytest

from tests.cluster.checks import assert_harmed_once, assert_random_rows_add_up, assert_single_node_answer
from tests.cluster.conftest import Run
from tests.cluster.experiment import Fault, Kind
from tests.cluster.tables import GROUPED, JOINED, RANDOM

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]

LOST: dict[str, tuple[Kind, str, str]] = {
    "an error in a leaf": ("io_error", "mapped", GROUPED),
    "an error above a join, streamed to the reader": ("io_error", "reduced", JOINED),
    "a killed worker above a shuffle": ("worker_killed", "reduced", GROUPED),
}


@pytest.mark.parametrize(("kind", "function", "query"), LOST.values(), ids=LOST)
def test_a_lost_attempt_is_made_again(run: Run, tables: dict[str, str], kind: Kind, function: str, query: str) -> None:
    answer = run(query, {function: Fault(kind, on_task=2)})
    assert_single_node_answer(answer, query, tables)
    assert_harmed_once(answer, function, "ExceptionFailure")
    assert answer.computed_again(function) > 0, answer.describe()
    assert answer.earlier_attempts > 0, answer.describe()


def test_a_copy_that_overtakes_a_task(run: Run, tables: dict[str, str]) -> None:
    """The slow attempt would wait until the query is over."""
    answer = run(GROUPED, {"mapped": Fault("slow")})
    assert_single_node_answer(answer, GROUPED, tables)
    assert_harmed_once(answer, "mapped", "TaskKilled")
    assert answer.speculative_copies > 0, answer.describe()
    assert answer.computed_again("mapped") > 0, answer.describe()


def test_two_copies_that_end_together(run: Run) -> None:
    """Each puts its rows into other buckets."""
    answer = run(RANDOM, {"mapped": Fault("raced")})
    assert_random_rows_add_up(answer)
    assert answer.speculative_copies > 0, answer.describe()
    assert answer.computed_again("mapped") > 0, answer.describe()
