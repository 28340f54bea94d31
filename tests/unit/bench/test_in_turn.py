"""Engines take turns; one that fails does not end the run, and a user who cancels does."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, SPARK_SQL
from sparkfusion.bench.in_turn import compare_answers, take_turns
from sparkfusion.bench.referee import Referee

ONE, TWO = pa.table({"x": [1]}), pa.table({"x": [2]})


def fail() -> pa.Table:
    raise RuntimeError("no memory is left")


def test_every_engine_has_a_turn_in_every_round() -> None:
    steps: list[tuple[str, int]] = []
    found, answers = take_turns(
        {SINGLE_NODE: lambda: ONE, OURS: lambda: TWO}, 2, lambda *step: steps.append(step), lambda error: False
    )
    assert steps == [(SINGLE_NODE, 1), (OURS, 1), (SINGLE_NODE, 2), (OURS, 2)]
    assert [len(turns.seconds) for turns in found.values()] == [2, 2]
    assert answers == {SINGLE_NODE: ONE, OURS: TWO}


def test_an_engine_that_fails_is_not_asked_again() -> None:
    steps: list[tuple[str, int]] = []
    found, answers = take_turns(
        {SPARK_SQL: fail, OURS: lambda: ONE}, 2, lambda *step: steps.append(step), lambda error: False
    )
    assert steps == [(SPARK_SQL, 1), (OURS, 1), (OURS, 2)]
    assert found[SPARK_SQL].error == "no memory is left"
    assert answers == {OURS: ONE}


def test_an_error_that_means_stop_is_raised() -> None:
    with pytest.raises(RuntimeError, match="no memory is left"):
        take_turns({OURS: fail}, 2, lambda *step: None, lambda error: True)


def test_answers_are_compared_with_that_of_a_single_node() -> None:
    engines = {SINGLE_NODE: lambda: ONE, SPARK_SQL: lambda: TWO, OURS: lambda: ONE}
    found, answers = take_turns(engines, 1, lambda *step: None, lambda error: False)
    judged = compare_answers("select 1 as x", found, answers, Referee({}))
    assert {engine: turns.equal for engine, turns in judged.items()} == {
        SINGLE_NODE: True,
        SPARK_SQL: False,
        OURS: True,
    }


def test_without_an_answer_of_a_single_node_nothing_is_called_equal() -> None:
    found, answers = take_turns({SINGLE_NODE: fail, OURS: lambda: ONE}, 1, lambda *step: None, lambda error: False)
    judged = compare_answers("select 1 as x", found, answers, Referee({"t": Path("nowhere")}))
    assert judged[OURS].equal is None
    assert judged[OURS].note == "single-node DataFusion did not answer"
