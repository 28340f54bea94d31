"""Queries of ordinary kinds, where no trap is known: joins of every kind, and frames that are empty or encoded."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.verify import assert_distributed_eq, compare_tables
from tests.behaviour.traps.conftest import PARTITIONED_JOINS
from tests.conftest import Connect
from tests.runners import FLIGHT, IN_SHUFFLE, LOCAL, TWO_BY_TWO, Runner

pytestmark = pytest.mark.sample(LOCAL, FLIGHT, "spark-local", "spark-spark")  # exchanges of every kind

FILES = 3
FORCED: dict[str, object] = {
    "sparkfusion.bytes_per_partition": 1,
    "datafusion.execution.target_partitions": FILES,
}
JOINS = {
    "inner": "select f.v, e.v as w from facts f join events e on f.k = e.k and f.v < e.v",
    "right": "select e.v, f.v as w from events e right join facts f on f.k = e.k",
    "full": "select e.v, f.v as w from events e full join facts f on f.k = e.k",
    "of dictionaries": "select f.v, e.d from facts f join events e on f.d = e.d where f.v < 100",
}
OTHERS = {
    "union": "select k, 'f' as t from facts union select k, 'e' from events union select 99, 'x'",
    "limit of an order": "select v, k from facts order by v desc limit 11 offset 3",
    "windows": (
        "select k, v, row_number() over (partition by k order by v) as r, "
        "sum(v) over (partition by k order by v rows between 2 preceding and current row) as s from facts"
    ),
    "distinct": "select count(distinct k) as k, count(distinct x) as x from facts",
    "rollup": "select k, x is null as n, sum(v) as s from facts group by rollup (k, x is null)",
    "dictionary column": "select v, d from facts",
    "dictionary keys": "select d, count(*) as n, sum(x) as x from facts group by d",
    "nothing found": "select k, sum(v) as s from facts where v < 0 group by k",
    "nothing streamed": "select v from facts where v < 0",
}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`facts`: 200 rows, `events`: 60 rows with some keys of its own. `d` is a dictionary, another one in each file."""
    directory = tmp_path_factory.mktemp("queries")
    for name, rows, first_key in (("facts", 200, 0), ("events", 60, 5)):
        (directory / name).mkdir()
        for file in range(FILES):
            numbers = range(rows * file // FILES, rows * (file + 1) // FILES)
            table = pa.table(
                {
                    "k": [number % 17 + first_key for number in numbers],
                    "v": [number * 3 for number in numbers],
                    "x": [None if number % 7 == 0 else float(number) for number in numbers],
                    "d": pa.array([f"word {number % (5 + file)}" for number in numbers]).dictionary_encode(),
                }
            )
            pq.write_table(table, directory / name / f"{file}.parquet")
    return directory


def _register(session: Session, files: Path) -> Session:
    for name in ("facts", "events"):
        session.register_parquet(name, files / name)
    return session


@pytest.fixture(scope="module")
def session(connect_shared: Connect, files: Path) -> Session:
    return _register(connect_shared(FORCED), files)


@pytest.fixture(scope="module")
def shuffling(connect_shared: Connect, files: Path) -> Session:
    """Joins shuffle both sides instead of sending one of them to every task."""
    return _register(connect_shared(FORCED | PARTITIONED_JOINS), files)


@pytest.fixture(scope="module")
def whole(connect_shared: Connect, files: Path) -> Session:
    """One task runs all partitions of a query."""
    return _register(connect_shared(FORCED | {"sparkfusion.tasks": 1, "sparkfusion.task_cores": 0}), files)


@pytest.mark.parametrize("sql", [*JOINS.values(), *OTHERS.values()], ids=[*JOINS, *OTHERS])
def test_query_gives_its_single_node_answer(session: Session, sql: str) -> None:
    assert_distributed_eq(session, sql)


@pytest.mark.parametrize("sql", JOINS.values(), ids=JOINS)
def test_join_of_shuffled_sides(shuffling: Session, sql: str) -> None:
    assert_distributed_eq(shuffling, sql)


@pytest.fixture(scope="module")
def wide(connect_shared: Connect, files: Path) -> Session:
    """Two tasks of two partitions each, and joins that shuffle both sides."""
    return _register(connect_shared(FORCED | PARTITIONED_JOINS | TWO_BY_TWO), files)


@pytest.fixture(scope="module")
def wide_broadcasting(connect_shared: Connect, files: Path) -> Session:
    """The same with joins that send one side to both tasks, each of which hashes it once."""
    return _register(connect_shared(FORCED | TWO_BY_TWO), files)


@pytest.mark.sample("local", "flight", "spark-local")
@pytest.mark.parametrize("sql", [*JOINS.values(), *OTHERS.values()], ids=[*JOINS, *OTHERS])
def test_tasks_run_several_partitions(wide: Session, sql: str) -> None:
    query = wide.sql(sql)
    found = compare_tables(query.to_datafusion().to_arrow_table(), query.collect())
    assert found.equal, found


@pytest.mark.sample("local", "flight", "spark-local")
@pytest.mark.parametrize("sql", JOINS.values(), ids=JOINS)
def test_tasks_of_several_partitions_hash_a_side_once(wide_broadcasting: Session, sql: str) -> None:
    query = wide_broadcasting.sql(sql)
    found = compare_tables(query.to_datafusion().to_arrow_table(), query.collect())
    assert found.equal, found


def test_which_stages_have_wide_tasks(wide: Session, runner: Runner) -> None:
    """Both sides of the join, but neither what streams to the consumer nor a union, and nothing in Spark's shuffle."""
    expected = [1, 1, 1] if runner.name in IN_SHUFFLE else [2, 2, 1]
    graph = wide.sql("select f.v, e.v as w from facts f join events e on f.k = e.k").distribution().graph
    assert graph is not None
    assert [stage.partitions_per_task for stage in graph.stages] == expected
    assert {stage.planned_tasks for stage in graph.stages if stage.partitions_per_task > 1} <= {2}
    union = "select k, count(*) from (select k from facts union all select k from events) group by k"
    graph = wide.sql(union).distribution().graph
    assert graph is not None
    assert all(stage.partitions_per_task == 1 for stage in graph.stages)


@pytest.mark.parametrize("sql", [*JOINS.values(), *OTHERS.values()], ids=[*JOINS, *OTHERS])
def test_one_task_runs_the_whole_plan(whole: Session, sql: str) -> None:
    query = whole.sql(sql)
    graph = query.distribution().graph
    assert graph is not None
    assert [stage.whole for stage in graph.stages] == [True]
    found = compare_tables(query.to_datafusion().to_arrow_table(), query.collect())
    assert found.equal, found


def test_rows_in_memory_travel(session: Session) -> None:
    """Small tables inside the plan, large ones through files."""
    session.register_record_batches("few", [[pa.record_batch({"x": [i, i + 1]})] for i in range(3)])
    numbers = [pa.record_batch({"x": pa.array(range(i, i + 100_000))}) for i in range(3)]
    session.register_record_batches("many", [[batch] for batch in numbers])
    assert_distributed_eq(session, "select x % 2 as odd, count(*) as n from few group by x % 2")
    assert_distributed_eq(session, "select m.x % 7 as r, count(*) as n from many m join few f on m.x = f.x group by 1")
