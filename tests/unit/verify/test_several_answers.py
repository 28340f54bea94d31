"""Queries with several right answers are recognised, the others are not excused."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest

from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.several_answers import reason_in_answers, reason_in_plan


@pytest.fixture
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    context.enable_spark_functions()
    batches = [pa.record_batch({"k": [1, 1, 2], "v": ["a", "b", "c"]}), pa.record_batch({"k": [1, 2], "v": ["d", "e"]})]
    context.register_record_batches("t", [[batch] for batch in batches])
    return context


def reason(context: datafusion.SessionContext, sql: str, *, unordered_lists: bool = False) -> str | None:
    return reason_in_plan(context.sql(sql).logical_plan(), context, CompareOptions(unordered_lists=unordered_lists))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select random() from t", "random()"),
        ("select v from t where random() < 0.5", "random()"),
        ("select uuid(), v from t", "uuid()"),
        ("select now() from t", "now()"),
        ("select array_agg(v) from t", "unordered_lists=True"),
        ("select array_agg(v) filter (where k > 1) from t", "array_agg"),
        ("select first_value(v) from t", "first_value"),
        ("select string_agg(v, ',') from t", "string_agg"),
        ("select last_value(v) over (partition by k) from t", "last_value"),
        ("select collect_list(v) from t", "unordered_lists=True"),
        ("select shuffle(make_array(1, 2)) from t", "shuffle"),
    ],
)
def test_functions_that_leave_the_answer_open(context: datafusion.SessionContext, sql: str, words: str) -> None:
    assert words in (reason(context, sql) or "")


@pytest.mark.parametrize(
    "sql",
    [
        "select 'random()' from t",
        "select array_agg(v order by v) from t",
        "select array_agg(v order by v) filter (where k > 1) from t",
        "select first_value(v order by v) from t",
        "select string_agg(v, ',' order by v) from t",
        "select nth_value(v, 2) over (partition by k order by v) from t",
        "select last_value(v) ignore nulls over (order by v) from t",
        "select k, count(*) from t group by k having count(*) > 1 order by k",
    ],
)
def test_determined_queries_have_no_excuse(context: datafusion.SessionContext, sql: str) -> None:
    assert reason(context, sql) is None


def test_unordered_lists_make_array_agg_determined(context: datafusion.SessionContext) -> None:
    assert reason(context, "select array_agg(v) from t", unordered_lists=True) is None
    assert reason(context, "select first_value(v) from t", unordered_lists=True) is not None


def test_other_partitionings_prove_what_the_plan_does_not_show() -> None:
    context = datafusion.SessionContext()
    calls = iter(range(1_000_000))
    tick = datafusion.udf(
        lambda values: pa.array([next(calls) for _ in values], pa.int64()), [pa.int64()], pa.int64(), "volatile", "tick"
    )
    context.register_udf(tick)
    context.register_record_batches("t", [[pa.record_batch({"k": [1, 2]})]])
    plan = context.sql("select tick(k) from t").logical_plan()
    first = context.sql("select tick(k) from t").to_arrow_table()
    assert reason_in_plan(plan, context, CompareOptions()) is None
    found = reason_in_answers(plan, {}, first, CompareOptions())
    assert found is not None
    assert "single-node DataFusion itself gives another answer" in found


def test_a_stable_query_is_not_excused(context: datafusion.SessionContext) -> None:
    frame = context.sql("select k, sum(k) over (partition by k order by v) s from t")
    assert reason_in_answers(frame.logical_plan(), {}, frame.to_arrow_table(), CompareOptions()) is None
