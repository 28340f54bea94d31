"""An executor's JVM is killed, with everything that it kept: in the middle of a stage, and between two."""

from __future__ import annotations

import pytest

from tests.cluster.checks import assert_harmed_once, assert_random_rows_add_up, assert_single_node_answer
from tests.cluster.conftest import Run
from tests.cluster.experiment import Answer, Fault, Store
from tests.cluster.tables import COUNTED, GROUPED, GROUPED_TWICE, JOINED, LIMIT, LIMITED, RANDOM

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]

KILLED = Fault("executor_killed", on_task=3)
"""When the third of four tasks begins at least one of them is done: an executor runs one at a time."""

ONLY_SPARK = pytest.mark.parametrize("store", ["spark"], indirect=True)
"""For tests of lost frames: in a shared store they outlive the executor."""


def test_killed_in_the_middle_of_a_stage(run: Run, tables: dict[str, str], store: Store) -> None:
    """The reader already has rows of the tasks that are done."""
    answer = run(JOINED, {"reduced": KILLED})
    assert_single_node_answer(answer, JOINED, tables)
    assert_harmed_once(answer, "reduced", "ExecutorLostFailure")
    assert answer.computed_again("reduced") > 0, answer.describe()
    assert_lost_frames_were_made_again(answer, store)


@ONLY_SPARK
def test_frames_of_two_stages_are_lost_at_once(run: Run, tables: dict[str, str], store: Store) -> None:
    answer = run(GROUPED_TWICE, {"last": KILLED})
    assert_single_node_answer(answer, GROUPED_TWICE, tables)
    assert_harmed_once(answer, "last", "ExecutorLostFailure")
    assert answer.computed_again("reduced") > 0, answer.describe()
    assert_lost_frames_were_made_again(answer, store)


def test_killed_between_two_stages(run: Run, tables: dict[str, str], store: Store) -> None:
    answer = run(GROUPED, kill_after_stage=1)
    assert_single_node_answer(answer, GROUPED, tables)
    assert answer.killed not in answer.executors_of("reduced"), answer.describe()
    assert_lost_frames_were_made_again(answer, store)


@ONLY_SPARK
def test_few_rows_are_in_the_driver_too(run: Run, tables: dict[str, str]) -> None:
    """The stage that reads them runs there, so nothing has to be made again."""
    answer = run(COUNTED, kill_after_stage=1, settings={"sparkfusion.small_stage_bytes": "4MiB"})
    assert_single_node_answer(answer, COUNTED, tables)
    assert answer.killed in answer.executors_of("mapped"), answer.describe()
    assert not answer.computed_again("mapped"), answer.describe()


def assert_lost_frames_were_made_again(answer: Answer, store: Store) -> None:
    """What was written to a shared store is still there; what Spark kept on the executor is not."""
    assert answer.killed in answer.executors_of("mapped"), answer.describe()
    if store == "shared":
        assert answer.speculative_copies or not answer.computed_again("mapped"), answer.describe()
        assert answer.recomputed_inputs == 0, answer.describe()
    else:
        assert answer.computed_again("mapped") > 0, answer.describe()
        assert answer.recomputed_inputs > 0, answer.describe()


# ---- rows that are others when they are computed again


def test_random_rows_are_of_one_attempt_everywhere(run: Run, store: Store) -> None:
    """Some of the rows are already in groups when others are lost."""
    answer = run(RANDOM, {"reduced": KILLED})
    assert_random_rows_add_up(answer)
    assert_harmed_once(answer, "reduced", "ExecutorLostFailure")
    assert answer.killed in answer.executors_of("mapped"), answer.describe()
    assert_started_over(answer, store)


@ONLY_SPARK
def test_random_rows_that_the_reader_has_cannot_be_taken_back(run: Run) -> None:
    answer = run(RANDOM.replace("order by bucket", ""), {"reduced": KILLED})
    assert_harmed_once(answer, "reduced", "ExecutorLostFailure")
    assert answer.error is not None, answer.describe()
    assert answer.error.startswith(
        "ExternalError: a worker was lost after some of its rows had been returned to you"
    ), answer.describe()
    assert "run the query again" in answer.error


@ONLY_SPARK
def test_a_limit_gives_its_rows_once(run: Run, store: Store) -> None:
    """The executor that is killed has the output of the one task with the limit."""
    answer = run(LIMITED, kill_after_stage=2)
    assert answer.error is None, answer.describe()
    assert sum(n for _, n in answer.rows) == LIMIT, answer.describe()
    assert answer.killed in answer.executors_of("reduced"), answer.describe()
    assert_started_over(answer, store)


def assert_started_over(answer: Answer, store: Store) -> None:
    """Lost frames that cannot be made again as they were: everything computed from them goes too, which events tell."""
    assert bool(answer.failures) == (store == "spark"), answer.describe()
    assert all(failure.retried for failure in answer.failures), answer.describe()
