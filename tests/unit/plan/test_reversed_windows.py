"""Window functions over rows in the opposite order."""

from __future__ import annotations

import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.reversed_windows import write_reversal
from sparkfusion.plan.wire import PlanNode, decode, encode, kind, walk

REVERSED = "select v, {} over (partition by k order by v desc) as z from (select * from t order by k, v limit 9)"
SORTED = "select v, {} over (partition by k order by v desc) as z from t"


@pytest.fixture
def context() -> SessionContext:
    context = SessionContext()
    context.from_pydict({"k": [1, 2] * 6, "v": list(range(12)), "x": [v * 7 % 11 for v in range(12)]}, name="t")
    return context


def plan(context: SessionContext, sql: str) -> PlanNode:
    return decode(context.sql(sql).execution_plan().to_bytes(context))


def run(context: SessionContext, root: PlanNode) -> dict[int, object]:
    copy = ExecutionPlan.from_bytes(context, encode(root))
    batches = [batch.to_pyarrow() for part in range(copy.partition_count) for batch in context.execute(copy, part)]
    return {row["v"]: row["z"] for batch in batches for row in batch.to_pylist()}


@pytest.mark.parametrize(
    "call", ["lag(x)", "lag(x, 2, 50)", "lead(x)", "lead(x, -1)", "nth_value(x, 2)", "nth_value(x, -2)"]
)
def test_what_is_reversed_is_written_into_the_plan(context: SessionContext, call: str) -> None:
    sql = REVERSED.format(call)
    right = {row["v"]: row["z"] for row in context.sql(sql).to_pylist()}
    root = plan(context, sql)
    assert run(context, root) != right
    assert write_reversal(root)
    assert run(context, root) == right


@pytest.mark.parametrize(
    "sql", [SORTED.format("lag(x)"), REVERSED.format("first_value(x)"), "select lag(x) over () from t"]
)
def test_other_windows_stay_as_they_are(context: SessionContext, sql: str) -> None:
    root = plan(context, sql)
    before = encode(root)
    assert not write_reversal(root)
    assert encode(root) == before


def test_a_column_that_does_not_tell_its_order_is_refused(context: SessionContext) -> None:
    root = plan(context, REVERSED.format("lag(x)"))
    (window,) = (node for node in walk(root) if kind(node) == "window")
    window.window.function[0].column = "z"
    with pytest.raises(NotDistributableError, match="the direction of lag is lost"):
        write_reversal(root)


def test_a_number_of_another_type_is_refused(context: SessionContext) -> None:
    root = plan(context, REVERSED.format("nth_value(x, arrow_cast(2, 'Int32'))"))
    with pytest.raises(NotDistributableError, match="the direction of nth_value is lost"):
        write_reversal(root)
