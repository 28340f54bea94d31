"""Fed tasks are harmed in the middle of their units: every unit's rows come once, in other stages and at the reader."""

from __future__ import annotations

import pytest

from tests.behaviour.parts import TOTAL
from tests.cluster.checks import assert_harmed_once, assert_single_node_answer
from tests.cluster.conftest import Run
from tests.cluster.experiment import Fault, Kind
from tests.cluster.tables import GROUPED, JOINED

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(func_only=True),
    pytest.mark.parametrize("store", ["spark"], indirect=True),  # units do not go through stores
]

ONE_BY_ONE = {"sparkfusion.feed_units_ahead": 1}
"""Each grant is one unit, so a task has done some when it is harmed."""
STREAMED = "select mapped(v) as v from t"
LOST: dict[str, tuple[Kind, str, str]] = {
    "an error": ("io_error", "ExceptionFailure", GROUPED),
    "a killed worker": ("worker_killed", "ExceptionFailure", GROUPED),
    "a killed executor": ("executor_killed", "ExecutorLostFailure", JOINED),
    "an error, rows at the reader": ("io_error", "ExceptionFailure", STREAMED),
    "a killed executor, rows at the reader": ("executor_killed", "ExecutorLostFailure", STREAMED),
}


@pytest.mark.parametrize(("kind", "reason", "query"), LOST.values(), ids=LOST)
def test_an_attempt_that_is_lost_after_some_units(
    run: Run, tables: dict[str, str], kind: Kind, reason: str, query: str
) -> None:
    answer = run(query, {"mapped": Fault(kind, on_call=3)}, fed=ONE_BY_ONE)
    assert_single_node_answer(answer, query, tables)
    assert_harmed_once(answer, "mapped", reason)


def test_rows_that_the_reader_has_are_not_made_again(run: Run) -> None:
    answer = run(STREAMED, {"mapped": Fault("io_error", on_call=3)}, fed=ONE_BY_ONE)
    assert sorted(v for (v,) in answer.rows) == list(range(TOTAL)), answer.describe()
    firsts = [call.first for call in answer.calls if not call.faulty]
    assert len(firsts) == len(set(firsts)), answer.describe()


def test_a_copy_that_overtakes_a_fed_task(run: Run, tables: dict[str, str]) -> None:
    """The slow attempt would wait until the query is over; its copy is given the same units, then the rest."""
    answer = run(GROUPED, {"mapped": Fault("slow", on_call=3)}, fed=ONE_BY_ONE)
    assert_single_node_answer(answer, GROUPED, tables)
    assert answer.speculative_copies > 0, answer.describe()
    assert answer.computed_again("mapped") > 0, answer.describe()
