"""Queries that go wrong easily when their tasks are isolated, and Python functions, on Spark's workers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import Accumulator, udaf, udf

from sparkfusion import Session
from sparkfusion.verify import assert_distributed_eq
from tests.conftest import Connect
from tests.spark.tables import DISTRIBUTED, PARTITIONED_JOINS, register, write_tables

QUERIES = {
    "inner join": "select f.v, e.v as w from facts f join events e on f.k = e.k and f.v < e.v",
    "left join": "select e.v, f.v as w from events e left join facts f on f.k = e.k",
    "right join": "select e.v, f.v as w from events e right join facts f on f.k = e.k",
    "full join": "select e.v, f.v as w from events e full join facts f on f.k = e.k",
    "semi join": "select v from events where k in (select k from facts)",
    "anti join": "select v from events e where not exists (select 1 from facts f where f.k = e.k)",
    "mark join": "select v from events where k in (select k from facts) or v < 30",
    "nested loop": "select e.v, f.v as w from events e left join facts f on e.v < f.v - 500 and f.k > e.k",
    "not in": "select v from events where k not in (select k from facts)",
    "not in, with a null": (
        "select v from events where k not in (select case when v = 3 then null else k end from facts)"
    ),
    "intersect": "select k from events intersect select k from facts",
    "except": "select k from events except select k from facts",
    "union": "select k, 'f' as t from facts union select k, 'e' from events union select 99, 'x'",
    "union all": "select k, count(*) as n from (select k from facts union all select k from events) group by k",
    "limit of an order": "select v, k from facts order by v desc limit 11 offset 3",
    "limit below a group": (
        "select sum(n) as n from (select k, count(*) as n from (select k from facts limit 77) group by k)"
    ),
    "windows": (
        "select k, v, row_number() over (partition by k order by v) as r, "
        "sum(v) over (partition by k order by v rows between 2 preceding and current row) as s from facts"
    ),
    "distinct": "select count(distinct k) as k, count(distinct x) as x from facts",
    "rollup": "select k, x is null as n, sum(v) as s from facts group by rollup (k, x is null)",
    "scalar subquery": "select k, count(*) as n from facts where v > (select avg(v) from events) group by k",
    "dictionary column": "select v, d from facts",
    "dictionary keys": "select d, count(*) as n, sum(x) as x from facts group by d",
    "dictionary join": "select f.v, e.d from facts f join events e on f.d = e.d where f.v < 100",
    "same names": "select a.v, b.v from facts a join events b on a.k = b.k order by a.v, b.v",
    "same names, all": "select * from facts a full join events b on a.k = b.k",
    "nothing found": "select k, sum(v) as s from facts where v < 0 group by k",
    "nothing streamed": "select v from facts where v < 0",
    "no columns": "select count(*) as n from facts f cross join events e where f.v > 10 and e.v > 10",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def session(connect_shared: Connect, files: Path) -> Session:
    return register(connect_shared(DISTRIBUTED), files)


@pytest.fixture(scope="module")
def partitioned(connect_shared: Connect, files: Path) -> Session:
    """Joins shuffle both sides instead of sending one of them to every task."""
    return register(connect_shared(PARTITIONED_JOINS), files)


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_query_gives_its_single_node_answer(session: Session, sql: str, connect_shared: Connect) -> None:
    assert_distributed_eq(session, sql)


@pytest.mark.parametrize("name", [name for name in QUERIES if "join" in name])
def test_join_of_shuffled_sides(partitioned: Session, name: str, connect_shared: Connect) -> None:
    assert_distributed_eq(partitioned, QUERIES[name])


def test_frames_without_columns_keep_their_rows(session: Session, connect_shared: Connect) -> None:
    nothing = session.sql("select v from facts where v > 10").select()
    assert nothing.distribution().distributed
    assert nothing.collect().num_rows == 196


def test_rows_in_memory_travel(session: Session, connect_shared: Connect) -> None:
    """Small tables inside the plan, large ones through files."""
    session.register_record_batches("few", [[pa.record_batch({"x": [i, i + 1]})] for i in range(3)])
    numbers = [pa.record_batch({"x": pa.array(range(i, i + 100_000))}) for i in range(3)]
    session.register_record_batches("many", [[batch] for batch in numbers])
    assert_distributed_eq(session, "select x % 2 as odd, count(*) as n from few group by x % 2")
    assert_distributed_eq(session, "select m.x % 7 as r, count(*) as n from many m join few f on m.x = f.x group by 1")


class Total(Accumulator):
    """Sum, with a state that has to be merged across tasks."""

    def __init__(self) -> None:
        self._sum = 0

    def update(self, *values: pa.Array) -> None:
        self._sum += pc.sum(values[0]).as_py() or 0

    def merge(self, states: list[pa.Array]) -> None:
        self._sum += pc.sum(states[0]).as_py() or 0

    def state(self) -> list[pa.Scalar]:
        return [pa.scalar(self._sum)]

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(self._sum)


def test_python_functions_travel_in_plans(session: Session, connect_shared: Connect) -> None:
    factor = 3
    session.register_udf(udf(lambda v: pc.multiply(v, factor), [pa.int64()], pa.int64(), "immutable", "times"))
    session.register_udaf(udaf(Total, [pa.int64()], pa.int64(), [pa.int64()], "immutable", "total"))
    assert_distributed_eq(session, "select k, sum(times(v)) as s from facts where times(v) % 2 = 0 group by k")
    assert_distributed_eq(session, "select k, total(times(v)) as s from facts group by k")
    found = session.sql("select total(v) as s from facts where v >= 0").to_pylist()
    assert found == [{"s": 3 * sum(range(200))}]


def test_functions_run_in_spark_workers(session: Session, connect_shared: Connect) -> None:
    import os

    def worker(values: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        inside = TaskContext.get() is not None
        return pa.array([os.getpid() if inside else 0] * len(values), pa.int64())

    session.register_udf(udf(worker, [pa.int64()], pa.int64(), "volatile", "worker"))
    found = session.sql("select worker(v) as w from facts").collect()["w"].unique().to_pylist()
    assert os.getpid() not in found
    assert 0 not in found
