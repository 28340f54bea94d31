"""The declared order is read from real plans and checked on answers."""

from __future__ import annotations

from typing import Any

import datafusion
import pyarrow as pa
import pytest

from sparkfusion.verify.declared_order import DeclaredSortOrder, OrderKey, declared_order, order_violation


@pytest.fixture
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    table = pa.table({"a": [3, 1, 2, 1], "b": ["x", "Y", None, "z"], "f": [1.0, float("nan"), None, -1.0]})
    context.register_record_batches("t", [table.to_batches()])
    return context


def order_of(context: datafusion.SessionContext, sql: str) -> tuple[DeclaredSortOrder, pa.Table]:
    frame = context.sql(sql)
    answer = frame.to_arrow_table()
    return declared_order(frame.logical_plan(), answer), answer


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select a, b from t order by a desc, b nulls first", [0, 1]),
        ("select b, a x from t order by x", [1]),
        ("select b, a x from t order by 2, 1", [1, 0]),
        ("select b, a x from t order by a", [1]),
        ("select distinct b from t order by b", [0]),
        ("select a from t union all select a from t order by a", [0]),
        ("select b, sum(a) s from t group by b order by sum(a) desc, b", [1, 0]),
        ("select t.a, u.a from t join t u on t.a = u.a order by u.a", [1]),
        ("select b, a from t order by a limit 3 offset 1", [1]),
        ("select * from (select b, a from t order by a limit 3) q", [1]),
        ("select q.a + 0 as z, q.a, q.b from (select b, a from t order by a, b limit 3) q", [1, 2]),
        ("with q as (select a as c from t) select c from q order by c", [0]),
        ("values (2), (1) order by 1", [0]),
        ("select a, row_number() over (order by a) r from t order by r desc", [1]),
        ("select a from t", []),
        ("select sum(a) from (select a from t order by a limit 2)", []),
        ("select a from (select a from t order by a limit 2) group by a", []),
    ],
)
def test_sort_keys_are_found_in_the_output(context: datafusion.SessionContext, sql: str, columns: list[int]) -> None:
    order, answer = order_of(context, sql)
    assert [key.column for key in order.keys] == columns
    assert not order.unchecked
    assert order_violation(answer, order.keys) is None


def test_direction_and_nulls_come_from_the_plan(context: datafusion.SessionContext) -> None:
    order, _ = order_of(context, "select a, b from t order by a desc, b nulls first")
    assert [str(key) for key in order.keys] == ["t.a DESC NULLS FIRST", "t.b ASC NULLS FIRST"]


def test_a_key_outside_the_output_is_said_to_be_unchecked(context: datafusion.SessionContext) -> None:
    order, _ = order_of(context, "select b, f from t order by b, a, f")
    assert [key.column for key in order.keys] == [0]
    assert order.unchecked == ("t.a", "t.f")
    assert "t.a, t.f not checked" in order.notes()[0]


@pytest.mark.parametrize(
    "sql",
    [
        "select b from t order by upper(b)",
        "select a, b from t order by case when a = 1 then b end desc, a",
        "select a as x, b from t order by -a",
    ],
)
def test_expressions_over_output_columns_are_checked(context: datafusion.SessionContext, sql: str) -> None:
    order, answer = order_of(context, sql)
    assert not order.unchecked
    assert order.keys[0].expression is not None
    assert order_violation(answer, order.keys) is None
    reversed_answer = pa.concat_tables([answer.slice(row, 1) for row in reversed(range(answer.num_rows))])
    assert order_violation(reversed_answer, order.keys) is not None


def test_a_random_key_is_unchecked(context: datafusion.SessionContext) -> None:
    order, _ = order_of(context, "select a from t order by a, random()")
    assert [key.column for key in order.keys] == [0]
    assert order.unchecked == ("random()",)


NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "ascending", "nulls_first", "sorted_"),
    [
        ([1, 1, 2, None], True, False, True),
        ([None, 1, 2], True, True, True),
        ([None, 1, 2], True, False, False),
        ([2, 1, None], False, False, True),
        ([None, 2, 1], False, True, True),
        ([2, 1, None], False, True, False),
        ([1.0, 2.0, NAN, None], True, False, True),
        ([NAN, 1.0], True, False, False),
        ([NAN, 2.0, 1.0], False, False, True),
        ([2.0, NAN], False, False, False),
        ([0.0, -0.0, 0.0], True, False, True),
        (["B", "a"], True, False, True),
        (["a", "B"], True, False, False),
        ([None, None], True, False, True),
        ([True, False], True, False, False),
    ],
)
def test_order_of_values(values: list[Any], ascending: bool, nulls_first: bool, sorted_: bool) -> None:
    key = OrderKey("v", ascending, nulls_first, column=0)
    for array in (pa.array(values), pa.chunked_array([pa.array(values[:1], pa.array(values).type), values[1:]])):
        assert (order_violation(pa.table({"v": array}), [key]) is None) is sorted_


def test_later_keys_decide_only_within_ties() -> None:
    table = pa.table({"a": [1, 1, 2], "b": [2, 1, 0]})
    first, second = OrderKey("a", column=0), OrderKey("b", column=1)
    assert order_violation(table, [first]) is None
    found = order_violation(table, [first, second])
    assert found is not None
    assert "row 0 (a=1, b=2) comes before row 1 (a=1, b=1)" in found


def test_views_and_dictionaries_are_ordered_by_value() -> None:
    key = [OrderKey("v", column=0)]
    view = pa.table({"v": pa.array(["b", "a"], pa.string_view())})
    coded = pa.table({"v": pa.DictionaryArray.from_arrays([0, 1], ["b", "a"])})
    assert order_violation(view, key) is not None
    assert order_violation(coded, key) is not None
