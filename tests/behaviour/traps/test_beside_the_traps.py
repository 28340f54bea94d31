"""Holes next to the traps: names, planning that computes, panics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf

from sparkfusion.errors import QueryCancelledError
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.probes import PATIENCE
from tests.behaviour.traps.conftest import PARTITIONED_JOINS, Connected, run_alone
from tests.runners import Runner


@pytest.mark.parametrize(
    "sql",
    [
        "select a.v, b.v from facts a join events b on a.k = b.k order by a.v, b.v",
        "select * from facts a full join events b on a.k = b.k",
        "select a.v, b.v, c.v from facts a join events b on a.k = b.k join single c on c.k = b.k where a.v < b.v + c.v",
        "select distinct on (k) k, v from facts order by k, v desc",
    ],
)
def test_columns_of_the_same_name_cross_an_exchange(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)
    assert_distributed_eq(connected(PARTITIONED_JOINS), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select f.k, q.w from facts f, (select 100 / count(*) as w from events where v > 3) q",
        "select 100 / count(*) as a from facts where v > 3 union all select v from events",
    ],
)
def test_planning_computes_nothing_on_empty_input(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)


def test_a_function_is_not_called_while_planning(connected: Connected, tmp_path: Path) -> None:
    session = connected()
    calls = tmp_path / "calls"  # a file: the function travels inside the plan as a copy
    calls.touch()

    def spy(column: pa.Array) -> pa.Array:
        with calls.open("a") as file:
            file.writelines(f"{value} " for value in column.to_pylist())
        return column

    session.register_udf(udf(spy, [pa.int64()], pa.int64(), "immutable", name="spy"))
    frame = session.sql("select f.k, q.w from facts f, (select spy(count(*)) as w from events where v > 3) q")
    assert frame.distribution().distributed
    assert calls.read_text() == ""
    assert frame.collect().column("w").unique().to_pylist() == [58]
    assert calls.read_text() == "58 "


@pytest.mark.runners("local", "spark-local", reason="no frame is made, so there is nothing to store")
def test_a_panic_in_a_task_ends_the_query(
    connected: Connected, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Native code that panics raises a `BaseException`; the reader must hear of it."""

    class PanicError(BaseException):
        pass

    def panic(*args: object) -> None:
        raise PanicError("index out of bounds")

    here, on_spark = "sparkfusion.worker.carry_out.run_task", "sparkfusion.runner.spark.spark_job.run_on_executor"
    monkeypatch.setattr(here if runner.name == "local" else on_spark, panic)
    (error,) = run_alone(connected({"sparkfusion.task_retries": 0}), "select v from facts", seconds=PATIENCE)
    assert not isinstance(error, QueryCancelledError)
    assert "index out of bounds" in str(error)
