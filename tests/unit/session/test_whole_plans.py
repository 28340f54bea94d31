"""When one task runs a whole plan, and what it is given then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import FeedContext, FileUnit, Session, WorkUnitFeedProvider
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode, partition_count
from sparkfusion.session.dataframe import look_inside
from sparkfusion.verify import assert_distributed_eq

ROWS = 200_000
COUNT = "select k, count(*) as n from t group by k"
SPLITS = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 4}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    for file in range(4):
        rows = range(file, ROWS, 4)
        pq.write_table(pa.table({"k": [row % 7 for row in rows], "v": rows}), directory / f"{file}.parquet")
    return directory


@pytest.fixture
def session(files: Path) -> Iterator[Session]:
    with sparkfusion.connect(config=SPLITS | {"sparkfusion.tasks": 1}) as session:
        session.register_parquet("t", files)
        yield session


def graph_of(session: Session, sql: str) -> StageGraph:
    engine, query = look_inside(session.lazy_sql(sql))
    graph = engine.plan(query).distribution.graph
    assert graph is not None
    return graph


def is_whole(session: Session, sql: str) -> bool:
    return graph_of(session, sql).stages[0].whole


def test_one_task_runs_the_plan(session: Session) -> None:
    assert is_whole(session, COUNT)
    assert sorted(session.sql(COUNT).to_pydict()["k"]) == list(range(7))
    assert "1 task for the whole plan" in session.sql(COUNT).explain_text()


def test_queries_are_split_unless_users_ask_for_one_task(session: Session) -> None:
    session.config["sparkfusion.tasks"] = 0
    assert max(stage.task_count for stage in graph_of(session, COUNT).stages) == 4
    session.config["sparkfusion.tasks"] = 3
    assert max(stage.task_count for stage in graph_of(session, COUNT).stages) == 3


@pytest.mark.parametrize("limit", ["sparkfusion.task_memory_bytes", "datafusion.runtime.memory_limit"])
def test_under_a_memory_limit_the_plan_is_split(session: Session, limit: str) -> None:
    session.config[limit] = "100M"
    assert not is_whole(session, COUNT)


def test_rows_that_are_written_are_split(session: Session, tmp_path: Path) -> None:
    assert not is_whole(session, f"copy (select * from t) to '{tmp_path}/out/' stored as parquet")


def test_a_feed_is_split(session: Session, files: Path) -> None:
    class Files(WorkUnitFeedProvider):
        def schema(self) -> pa.Schema:
            return pq.read_schema(files / "0.parquet")

        def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
            del partition, context
            for path in sorted(files.iterdir()):
                yield FileUnit(str(path), path.stat().st_size)

    session.register_feed("fed", Files(), format="parquet")
    assert not is_whole(session, "select k, count(*) from fed group by k")


def test_a_verification_is_about_tasks(session: Session) -> None:
    """It would prove nothing about a plan that is not split."""
    assert assert_distributed_eq(session, COUNT).tasks > 1


def test_the_task_uses_no_more_cores_than_there_are_slots(session: Session) -> None:
    session.config["sparkfusion.slots"] = 2
    plan = decode(graph_of(session, "select k from t").stages[0].plan)
    assert partition_count(plan.coalesce_partitions.input) == 2


def test_a_stream_that_is_closed_early_stops_the_task(session: Session) -> None:
    with session.sql("select a.v from t a cross join t b").stream() as stream:
        assert next(stream).num_rows
