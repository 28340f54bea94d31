"""What counts in a benchmark, and what its report says."""

from __future__ import annotations

import pytest

from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, SPARK_SQL, BenchedQuery, BenchResult, Turns

RIGHT = Turns((2.0, 1.0), equal=True)


def result(*queries: BenchedQuery, asked: int | None = None) -> BenchResult:
    engines = tuple(queries[0].turns) if queries else (SINGLE_NODE, OURS)
    return BenchResult(1.0, 2, "in process", engines, tuple(range(1, (asked or len(queries)) + 1)), {}, list(queries))


def query(number: int, single: Turns, ours: Turns, spark: Turns | None = None) -> BenchedQuery:
    turns = {SINGLE_NODE: single, OURS: ours}
    return BenchedQuery(number, turns if spark is None else {SPARK_SQL: spark, **turns}, stages=2, tasks=3)


def test_the_best_round_counts_and_ratios_are_our_time_by_theirs() -> None:
    found = result(
        query(1, RIGHT, Turns((8.0, 4.0), equal=True)), query(2, Turns((2.0,), equal=True), Turns((0.5,), equal=True))
    )
    ratio = found.compare_with(SINGLE_NODE)
    assert ratio is not None
    assert (ratio.queries, ratio.ours, ratio.theirs, ratio.total) == (2, 4.5, 3.0, 1.5)
    assert ratio.geometric_mean == pytest.approx(1.0)
    lines = str(found).splitlines()
    assert lines[2].split() == ["q1", "1.000", "4.000", "4.00", "2", "3", "equal"]
    assert lines[4].split() == ["total", "3.000", "4.500", "1.50"]
    assert lines[5].split() == ["mean", "1.00", "(geometric)"]
    assert lines[-1] == "Answers: all equal."


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        (Turns((0.1,), equal=False, note="row 3 differs"), "DIFFERENT"),
        (Turns((0.1,), error="it ran out of memory"), "FAILED"),
    ],
)
def test_a_wrong_or_missing_answer_has_no_time(ours: Turns, word: str) -> None:
    found = result(query(1, RIGHT, RIGHT), query(2, RIGHT, ours))
    assert not found.is_right
    ratio = found.compare_with(SINGLE_NODE)
    assert ratio is not None
    assert (ratio.queries, ratio.ours, ratio.theirs) == (1, 1.0, 1.0)
    text = str(found)
    assert word in text
    assert (ours.error or ours.note) in text
    assert "in 1 of 2 queries" in text
    assert "NOT ALL EQUAL" in text


def test_spark_sql_has_a_ratio_of_its_own() -> None:
    found = result(query(1, RIGHT, RIGHT, spark=Turns((4.0,), equal=True)))
    assert "sparkfusion takes 0.25 times as long as Spark SQL." in str(found)
    assert found.to_json()["ratios"][SPARK_SQL]["total"] == 0.25


def test_an_answer_that_cannot_be_judged_is_not_called_equal() -> None:
    assert "undecided" in str(result(query(1, RIGHT, Turns((1.0,), note="two answers are right"))))


def test_a_run_that_was_stopped_says_so() -> None:
    stopped = result(query(1, RIGHT, RIGHT), asked=22)
    assert str(stopped).endswith("Stopped after 1 of 22 queries.")
    assert stopped.to_json()["complete"] is False
    assert "Stopped after 0 of 22 queries." in str(result(asked=22))
