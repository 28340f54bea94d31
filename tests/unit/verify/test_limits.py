"""Ties at the border of a LIMIT are free; everything else is not."""

from __future__ import annotations

from typing import Any

import datafusion
import pyarrow as pa
import pytest

from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.judge import Judge, Verdict
from sparkfusion.verify.limits import inner_limits, limit_choice, outermost_limit

OPTIONS = CompareOptions()


@pytest.fixture
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    table = pa.table({"k": [1, 2, 2, 2, 3], "v": ["a", "b", "c", "d", "e"], "f": [0.5, 1.0, 1.0 + 1e-14, 1.0, 2.0]})
    context.register_record_batches("t", [table.to_batches()])
    context.register_view("strings", context.sql("select arrow_cast(v, 'Utf8View') v, k from t"))
    return context


def judge(context: datafusion.SessionContext, sql: str, answer: dict[str, Any]) -> Verdict:
    frame = context.sql(sql)
    reference = frame.to_arrow_table()
    table = pa.table(answer).rename_columns(reference.column_names).cast(reference.schema)
    return Judge(reference, frame.logical_plan(), context, OPTIONS).judge(table)


def right(verdict: Verdict) -> bool:
    assert verdict.undecided is None, verdict.undecided
    return verdict.right


SORTED = "select k, v from t order by k limit 2"


@pytest.mark.parametrize("tied", ["b", "c", "d"])
def test_any_row_tied_at_the_border_is_right(context: datafusion.SessionContext, tied: str) -> None:
    assert right(judge(context, SORTED, {"k": [1, 2], "v": ["a", tied]}))


@pytest.mark.parametrize(
    "answer",
    [
        {"k": [2, 2], "v": ["b", "c"]},  # lacks the row before the border
        {"k": [1, 3], "v": ["a", "e"]},  # a row behind the border
        {"k": [1, 2], "v": ["a", "x"]},  # a row that is nowhere
        {"k": [1, 1], "v": ["a", "a"]},  # a row twice
        {"k": [1], "v": ["a"]},  # too few
        {"k": [1, 2, 2], "v": ["a", "b", "c"]},  # too many
        {"k": [2, 1], "v": ["b", "a"]},  # out of order
    ],
)
def test_a_wrong_answer_under_a_limit_is_found(context: datafusion.SessionContext, answer: dict[str, Any]) -> None:
    assert not right(judge(context, SORTED, answer))


def test_a_tied_row_may_not_be_taken_twice(context: datafusion.SessionContext) -> None:
    sql = "select k, v from t order by k limit 3"
    assert right(judge(context, sql, {"k": [1, 2, 2], "v": ["a", "d", "c"]}))
    assert not right(judge(context, sql, {"k": [1, 2, 2], "v": ["a", "d", "d"]}))


def test_a_limit_without_order_takes_any_rows(context: datafusion.SessionContext) -> None:
    sql = "select v from t limit 2"
    assert right(judge(context, sql, {"v": ["e", "c"]}))
    assert not right(judge(context, sql, {"v": ["e", "e"]}))
    assert not right(judge(context, sql, {"v": ["e", "z"]}))
    assert not right(judge(context, sql, {"v": ["e"]}))


def test_dictionaries_that_hold_null_are_compared(context: datafusion.SessionContext) -> None:
    """Arrow cannot make one of several such dictionaries, and so cannot take rows of a column that has them."""

    def batch(value: str) -> pa.RecordBatch:
        values, places = pa.array([value, None]), pa.array([0, 1, 0], pa.int32())
        return pa.record_batch({"w": pa.DictionaryArray.from_arrays(places, values)})

    context.register_record_batches("words", [[batch("a"), batch("b")]])
    frame = context.sql("select w from words limit 4")
    judge = Judge(frame.to_arrow_table(), frame.logical_plan(), context, OPTIONS)
    assert right(judge.judge(pa.Table.from_batches([batch("b"), batch("a").slice(1, 1)])))
    assert not right(judge.judge(pa.Table.from_batches([batch("b"), batch("c").slice(2, 1)])))


def test_a_limit_that_cuts_nothing_leaves_no_choice(context: datafusion.SessionContext) -> None:
    assert not right(judge(context, "select v from t limit 5", {"v": ["a", "b", "c", "d", "d"]}))


def test_an_offset_has_two_borders(context: datafusion.SessionContext) -> None:
    sql = "select k, v from t order by k limit 3 offset 2"
    assert right(judge(context, sql, {"k": [2, 2, 3], "v": ["b", "d", "e"]}))
    assert not right(judge(context, sql, {"k": [2, 2, 2], "v": ["b", "c", "d"]}))
    assert not right(judge(context, sql, {"k": [1, 2, 3], "v": ["a", "b", "e"]}))


def test_the_sort_key_need_not_be_in_the_output(context: datafusion.SessionContext) -> None:
    sql = "select v from t order by k limit 2"
    assert right(judge(context, sql, {"v": ["a", "d"]}))
    assert not right(judge(context, sql, {"v": ["d", "c"]}))
    assert not right(judge(context, sql, {"v": ["a", "e"]}))


def test_columns_of_the_same_name_under_a_limit(context: datafusion.SessionContext) -> None:
    sql = "select x.v, y.v, x.k from t x join t y on x.v = y.v order by x.k limit 2"
    assert right(judge(context, sql, {"a": ["a", "d"], "b": ["a", "d"], "k": [1, 2]}))
    assert not right(judge(context, sql, {"a": ["a", "d"], "b": ["a", "c"], "k": [1, 2]}))


def test_string_views_under_a_limit(context: datafusion.SessionContext) -> None:
    sql = "select v, k from strings order by k limit 2"
    assert right(judge(context, sql, {"v": ["a", "c"], "k": [1, 2]}))
    assert not right(judge(context, sql, {"v": ["b", "c"], "k": [2, 2]}))


def test_float_keys_that_differ_by_noise_are_tied(context: datafusion.SessionContext) -> None:
    sql = "select v, f from t order by f, v limit 2"
    assert right(judge(context, sql, {"v": ["a", "d"], "f": [0.5, 1.0]}))
    assert right(judge(context, sql, {"v": ["a", "c"], "f": [0.5, 1.0]}))
    assert not right(judge(context, sql, {"v": ["a", "e"], "f": [0.5, 2.0]}))


def test_a_limit_under_a_projection_and_a_sort(context: datafusion.SessionContext) -> None:
    sql = "select v || '!' as w from (select k, v from t order by k limit 2) order by 1"
    assert right(judge(context, sql, {"w": ["a!", "d!"]}))
    assert not right(judge(context, sql, {"w": ["b!", "d!"]}))


def test_an_inner_limit_with_ties_is_undecided(context: datafusion.SessionContext) -> None:
    verdict = judge(context, "select max(v) m from (select v from t order by k limit 2)", {"m": ["zzz"]})
    assert verdict.undecided == "a LIMIT inside the query chooses freely among 3 tied rows"


def test_an_inner_limit_with_a_total_order_excuses_nothing(context: datafusion.SessionContext) -> None:
    assert not right(judge(context, "select max(v) m from (select v from t order by k, v limit 2)", {"m": ["zzz"]}))
    assert not right(judge(context, "select max(k) m from (select k from t order by k limit 2)", {"m": [9]}))
    assert not right(judge(context, "select max(k) m from (select k from t limit 100)", {"m": [9]}))


def test_a_limit_in_a_subquery_expression_is_undecided(context: datafusion.SessionContext) -> None:
    verdict = judge(context, "select v from t where k = (select k from t limit 1)", {"v": ["e"]})
    assert verdict.undecided == "a LIMIT inside a subquery expression may choose other rows"


def test_every_reachable_limit_is_found(context: datafusion.SessionContext) -> None:
    plan = context.sql(
        "select * from (select k from t limit 4) a join (select k from t limit 3) b on a.k = b.k limit 2"
    ).logical_plan()
    outermost = outermost_limit(plan)
    assert outermost is not None
    assert len(list(inner_limits(outermost.plan))) == 2


def test_the_rows_of_a_choice(context: datafusion.SessionContext) -> None:
    limit = outermost_limit(context.sql(SORTED).logical_plan())
    assert limit is not None
    choice = limit_choice(limit, context, OPTIONS)
    assert choice.must.to_pydict() == {"k": [1], "v": ["a"]}
    assert choice.may.to_pydict() == {"k": [2, 2, 2], "v": ["b", "c", "d"]}
    assert choice.is_open(OPTIONS)
