"""When one task runs a whole plan, and what it is given then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import FeedContext, FileUnit, Session, WorkUnitFeedProvider
from sparkfusion.config import settings
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode, kind, partition_count, walk
from sparkfusion.session.dataframe import look_inside
from sparkfusion.session.task_width import MEMORY_FACTOR
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
    with sparkfusion.connect(config=SPLITS) as session:
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
    assert "Stage 1 ── 1 task for the whole plan, 4 partitions at once ── gather" in session.sql(COUNT).explain_text()


ARRAY_RANGE = "datafusion.execution.perfect_hash_join_small_build_threshold"
ARRAY_DENSITY = "datafusion.execution.perfect_hash_join_min_key_density"


def options_of(session: Session, sql: str, *, split: bool = False) -> tuple[int, float]:
    engine, query = look_inside(session.lazy_sql(sql))
    options = engine.plan(query, split=split).options
    return int(options[ARRAY_RANGE]), float(options[ARRAY_DENSITY])


def test_tasks_of_several_partitions_join_by_arrays_in_more_cases(session: Session) -> None:
    """A shuffle between the partitions of one task leaves each with a part of the keys and all of their range."""
    assert options_of(session, COUNT) == (262_144, 0.05)
    session.config["datafusion.execution.target_partitions"] = 2
    assert options_of(session, COUNT) == (262_144, 0.075)
    assert options_of(session, COUNT, split=True) == (1024, 0.15)


@pytest.mark.parametrize(("name", "value", "expected"), [(ARRAY_RANGE, 0, (0, 0.15)), (ARRAY_DENSITY, 1, (1024, 1.0))])
def test_how_users_choose_joins_by_arrays_stays(
    session: Session, name: str, value: int, expected: tuple[int, float]
) -> None:
    session.config[name] = value
    assert options_of(session, COUNT) == expected


def test_users_choose_tasks_of_one_partition(session: Session) -> None:
    session.config["sparkfusion.task_cores"] = 1
    assert max(stage.task_count for stage in graph_of(session, COUNT).stages) == 4
    del session.config["sparkfusion.task_cores"]
    session.config["sparkfusion.tasks"] = 3
    assert max(stage.task_count for stage in graph_of(session, COUNT).stages) == 3


def test_users_choose_the_cores_of_the_task(session: Session) -> None:
    session.config["sparkfusion.task_cores"] = 3
    (stage,) = graph_of(session, "select k from t").stages
    assert stage.partitions_per_task == 3
    assert partition_count(decode(stage.plan).coalesce_partitions.input) == 3


@pytest.mark.parametrize("limit", ["sparkfusion.task_memory_bytes", "datafusion.runtime.memory_limit"])
def test_under_a_memory_limit_the_plan_is_split(session: Session, limit: str) -> None:
    session.config[limit] = "100M"
    assert not is_whole(session, COUNT)
    assert "tasks of one partition: a memory limit is set" in session.sql(COUNT).explain_text()


def test_a_query_that_reads_far_more_than_fits_is_split(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    read = graph_of(session, COUNT).stages[0].scan_bytes
    monkeypatch.setattr(settings, "fair_share", lambda slots: read // MEMORY_FACTOR // slots - 1)
    assert not is_whole(session, COUNT)
    assert f"tasks of one partition: it reads {read:,} bytes" in session.sql(COUNT).explain_text()
    session.config["sparkfusion.tasks"] = 1  # the user's choice counts more than an estimate
    assert is_whole(session, COUNT)


def test_a_join_in_the_task_can_be_cancelled(session: Session) -> None:
    """It yields to the runtime: docs/upstream-defects.md, DF 19358."""
    (stage,) = graph_of(session, "select a.v from t a join t b on a.v = b.v").stages
    kinds = [kind(node) for node in walk(decode(stage.plan))]
    assert kinds[kinds.index("hash_join") - 1] == "cooperative"


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
