"""What benchmarks take for DataFusion's answer when another engine gives it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

from sparkfusion.bench.referee import Nulls, Referee

FIRST_TWO = "select x from t order by x limit 2"
ONE_OF_TIED = "select s from t order by length(s) limit 1"


@pytest.fixture
def referee(tmp_path: Path) -> Referee:
    directory = tmp_path / "t"
    directory.mkdir()
    pq.write_table(pa.table({"x": [1, None, 3], "s": ["a", "b", "c"]}), directory / "t.parquet")
    return Referee({"t": directory})


def answer_to(sql: str) -> pa.Table:
    """DataFusion's."""
    return SessionContext().sql(sql).to_arrow_table()


def test_the_same_values_of_other_types_are_equal(referee: Referee) -> None:
    sql = "select 5 as n, cast(1.25 as decimal(19, 6)) as d"
    answer = pa.table({"count": pa.array([Decimal(5)], pa.decimal128(38, 0)), "avg": pa.array([1.2500001])})
    assert referee.rule_other(sql, answer_to(sql), answer).equal is True


def test_a_number_that_differs_in_the_fourth_digit_is_different(referee: Referee) -> None:
    sql = "select 1.25e0 as a"
    ruling = referee.rule_other(sql, answer_to(sql), pa.table({"a": [1.251]}))
    assert ruling.equal is False
    assert "1.251" in ruling.note


@pytest.mark.parametrize("wrong", [1_000_001, 1_000_000.5])
def test_whole_numbers_are_compared_exactly(referee: Referee, wrong: float) -> None:
    sql = "select 1000000 as n"
    assert referee.rule_other(sql, answer_to(sql), pa.table({"n": [1_000_000.0]})).equal is True
    assert referee.rule_other(sql, answer_to(sql), pa.table({"n": [wrong]})).equal is False


@pytest.mark.parametrize("wrong", [{"x": [2, 2, 1]}, {"x": [1, 1]}, {"x": [1, 1, 2], "y": [1, 1, 2]}])
def test_rows_are_counted(referee: Referee, wrong: dict[str, list[int]]) -> None:
    sql = "select * from (values (1), (1), (2)) as v (x)"
    assert referee.rule_other(sql, answer_to(sql), pa.table({"x": [2, 1, 1]})).equal is True
    assert referee.rule_other(sql, answer_to(sql), pa.table(wrong)).equal is False


def test_our_answers_have_datafusions_types(referee: Referee) -> None:
    reference = pa.table({"x": pa.array([1], pa.int64())})
    assert referee.rule_own("select 1 as x", reference, reference).equal is True
    assert referee.rule_own("select 1 as x", reference, pa.table({"x": pa.array([1], pa.int32())})).equal is False


def test_our_answers_are_in_the_order_that_the_query_asks_for(referee: Referee) -> None:
    reference = pa.table({"s": ["a", "b", "c"]})
    backwards = pa.table({"s": ["c", "b", "a"]})
    assert referee.rule_own("select s from t order by s", reference, backwards).equal is False


def test_null_may_be_the_smallest_value_where_spark_has_it_so(referee: Referee) -> None:
    reference = pa.table({"x": [1, 3]})
    answer = pa.table({"x": pa.array([None, 1])})
    assert referee.rule_other(FIRST_TWO, reference, answer, "smallest").equal is True
    assert referee.rule_other(FIRST_TWO, reference, answer).equal is False
    assert referee.rule_other(FIRST_TWO, reference, pa.table({"x": [None, 3]}), "smallest").equal is False


def test_a_limit_may_keep_any_of_tied_rows(referee: Referee) -> None:
    reference = pa.table({"s": ["a"]})
    places: tuple[Nulls, ...] = ("largest", "smallest")
    for nulls in places:
        assert referee.rule_other(ONE_OF_TIED, reference, pa.table({"s": ["c"]}), nulls).equal is True
        assert referee.rule_other(ONE_OF_TIED, reference, pa.table({"s": ["d"]}), nulls).equal is False


def test_a_query_with_several_right_answers_is_undecided(referee: Referee) -> None:
    ruling = referee.rule_other("select random() as r", pa.table({"r": [0.1]}), pa.table({"r": [0.9]}))
    assert ruling.equal is None
    assert "random" in ruling.note
