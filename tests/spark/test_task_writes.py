"""Files that tasks write: each row once, in its place when the query has succeeded and not before, nothing else."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext, udf
from pyspark.sql import SparkSession

import sparkfusion
from sparkfusion import DataFrame, QueryCancelledError, Session, SparkfusionError, UserError
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.exchange.store import LocalFrameStore
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import TaskFinished
from sparkfusion.worker import copy
from tests.behaviour.parts import DISTRIBUTED, PARTS, TOTAL, assert_usable, record, rows_of, write_parts
from tests.behaviour.probes import PROMPT, Gate, holding_udf
from tests.runners import ALL_ON_SPARK, some_first

PLACES: dict[str, dict[str, object]] = {
    "embedded": {},
    "spark-local": {"sparkfusion.store": "local", **ALL_ON_SPARK},
    "spark-spark": {"sparkfusion.store": "spark", **ALL_ON_SPARK},
    "spark, in the driver": {"sparkfusion.store": "local", "sparkfusion.small_stage_bytes": "1GiB"},
}
"""Where tasks run and where their frames are: all of them write."""
SHORT = [name for name in PLACES if name != "spark-spark"]

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("t"))


@pytest.fixture(params=[*SHORT, pytest.param("spark-spark", marks=pytest.mark.long)])
def session(request: pytest.FixtureRequest, spark: SparkSession, files: Path) -> Iterator[Session]:
    target = None if request.param == "embedded" else spark
    with sparkfusion.connect(target, config={**DISTRIBUTED, **PLACES[request.param]}) as session:
        session.register_parquet("t", files)
        yield session


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with nothing in it."""
    made = tmp_path / "place"
    made.mkdir()
    return made


def tree(directory: Path) -> list[str]:
    """Everything below, hidden or not."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def written(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def values(directory: Path) -> list[Any]:
    return [value for file in written(directory) for value in pq.read_table(file, partitioning=None)["v"].to_pylist()]


def _read_json(path: Path) -> pa.Table:
    return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": pq.read_table,
    "csv": pyarrow.csv.read_csv,
    "json": _read_json,
}


# ---- what is written


def test_every_task_writes_its_rows_once(session: Session, place: Path) -> None:
    """One file a task, every row in one of them, and nothing beside."""
    frame = session.sql("select k, v, 'a, \"b\"' as text from t where v >= 0")
    expected = rows_of(frame.collect())
    events = record(session)
    for suffix, read in READERS.items():
        options: dict[str, Any] = {"with_header": True} if suffix == "csv" else {}
        assert getattr(frame, f"write_{suffix}")(place / suffix, **options) == TOTAL
        found = written(place / suffix)
        assert len(found) == PARTS
        assert {"".join(file.suffixes) for file in found} == {f".{suffix}"}
        assert rows_of(pa.concat_tables(map(read, found))) == expected
    assert names_in(place) == sorted(READERS)
    finished = [event for event in events if isinstance(event, TaskFinished)]
    assert [event.rows for event in finished] == [TOTAL // PARTS] * PARTS * len(READERS)


def test_what_has_an_order_is_one_file_in_that_order(session: Session, place: Path) -> None:
    backwards = list(range(TOTAL - 1, -1, -1))
    assert session.sql("select v from t order by v desc").write_parquet(place / "all") == TOTAL
    assert session.sql("select v from t order by v desc limit 5").write_parquet(place / "first") == 5
    assert len(written(place / "all")) == len(written(place / "first")) == 1
    assert values(place / "all") == backwards
    assert values(place / "first") == backwards[:5]
    assert names_in(place) == ["all", "first"]


def test_some_rows_and_no_rows(session: Session, place: Path) -> None:
    assert session.sql("select v from t limit 7 offset 3").write_parquet(place / "some") == 7
    assert len(values(place / "some")) == 7
    assert session.sql("select v, k from t where v < 0").write_parquet(place / "none") == 0
    assert pq.read_table(place / "none").schema.names == ["v", "k"]
    assert session.sql("select v from t where v = 1234").write_parquet(place / "one") == 1
    assert [values(place / "one"), len(written(place / "one"))] == [[1234], 1]
    assert names_in(place) == ["none", "one", "some"]


PARTITIONED = """select case when k = 0 then 'ö' when k = 1 then 'a/b' when k = 2 then 'ž %41' when k = 3 then ''
    else cast(k as varchar) end as p, cast(v % 2 as int) as odd, v from t where v >= 0"""


def test_partitions_are_named_as_datafusion_names_them(session: Session, files: Path, place: Path) -> None:
    plain = SessionContext()
    plain.register_parquet("t", str(files))
    plain.sql(f"copy ({PARTITIONED}) to '{place}/plain' stored as parquet partitioned by (p, odd)").collect()
    assert session.sql(PARTITIONED).write_parquet(place / "ours", partition_by=["p", "odd"]) == TOTAL
    expected = {str(file.parent.relative_to(place / "plain")) for file in written(place / "plain")}
    assert {str(file.parent.relative_to(place / "ours")) for file in written(place / "ours")} == expected
    assert len(expected) > 6
    for each in expected:
        assert sorted(values(place / "ours" / each)) == sorted(values(place / "plain" / each))


def test_the_schema_is_the_one_that_datafusion_writes(session: Session, files: Path, place: Path) -> None:
    query = """select v, arrow_cast('x', 'Utf8View') as s, cast(k as int unsigned) as u, cast(v as decimal(9, 2)) as d,
        to_timestamp(v) as at, [k, null] as l, 1 as one from t where v >= 0"""
    plain = SessionContext()
    plain.register_parquet("t", str(files))
    plain.sql(f"copy ({query}) to '{place}/plain' stored as parquet").collect()
    session.sql(query).write_parquet(place / "ours")
    (expected,) = {pq.read_schema(file) for file in written(place / "plain")}
    for file in written(place / "ours"):
        assert pq.read_schema(file).equals(expected, check_metadata=True)


# ---- where it is written


def test_files_that_are_there_stay(session: Session, place: Path) -> None:
    frame = session.sql("select v from t where v >= 0")
    assert frame.write_parquet(place / "out") == TOTAL
    before = written(place / "out")
    assert frame.write_parquet(place / "out") == TOTAL
    assert set(before) < set(written(place / "out"))
    assert sorted(values(place / "out")) == sorted([*range(TOTAL), *range(TOTAL)])


def test_two_writers_into_one_directory(session: Session, place: Path) -> None:
    counts: list[int] = []
    frames = [session.sql(f"select v from t where k = {k}") for k in (1, 2)]
    threads = [threading.Thread(target=lambda f=f: counts.append(f.write_parquet(place / "out"))) for f in frames]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == len(values(place / "out"))
    assert sorted(values(place / "out")) == [v for v in range(TOTAL) if v % 7 in (1, 2)]
    assert names_in(place) == ["out"]


def test_directories_on_the_way_are_made(session: Session, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = session.sql("select v from t where v >= 0")
    assert frame.write_parquet(place / "a" / "it's ü %41" / "out") == TOTAL
    assert names_in(place / "a" / "it's ü %41") == ["out"]
    monkeypatch.chdir(place)
    assert frame.write_parquet("relative") == TOTAL
    assert frame.write_parquet("v1.5/") == TOTAL
    assert names_in(place) == ["a", "relative", "v1.5"]
    assert sorted(values(place / "v1.5")) == list(range(TOTAL))


@pytest.fixture
def elsewhere(place: Path) -> Iterator[Path]:
    """A directory on another filesystem than `place`."""
    if not os.access(SHARED_MEMORY, os.W_OK) or SHARED_MEMORY.stat().st_dev == place.stat().st_dev:
        pytest.skip("there is one filesystem only")
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as made:
        yield Path(made)


def test_a_directory_on_another_filesystem(session: Session, place: Path, elsewhere: Path) -> None:
    """A link, or a mounted volume: what is beside the target is not where the target is."""
    (place / "out").symlink_to(elsewhere)
    assert session.sql("select v from t where v >= 0").write_parquet(place / "out") == TOTAL
    assert sorted(values(elsewhere)) == list(range(TOTAL))
    assert names_in(place) == ["out"]


WRONG_PLACES: dict[str, tuple[str, str]] = {
    "a file": ("taken", "it is a file"),
    "below a file": ("taken/out", "Not a directory|File exists"),
    "not writable": ("/proc/self/out", "no permission"),
    "cannot be made": ("/proc/nowhere/out", "No such file or directory"),
    "refused by the filesystem": ("/sys/out", "Operation not permitted|no permission"),
}


@pytest.mark.parametrize(("target", "reason"), WRONG_PLACES.values(), ids=WRONG_PLACES)
def test_a_place_that_cannot_be_written(session: Session, place: Path, target: str, reason: str) -> None:
    """Nobody's permissions stop root; /proc and /sys do."""
    (place / "taken").write_text("something")
    with pytest.raises(UserError, match=reason) as caught:
        session.sql("select v from t where v >= 0").write_parquet(place / target)
    assert str(place / target) in caught.value.message
    assert "sparkfusion-" not in caught.value.message
    assert (place / "taken").read_text() == "something"
    assert_usable(session)


# ---- when it goes wrong

FAILING: dict[str, Callable[[Session, Path], object]] = {
    "a task": lambda session, out: session.sql("select v / (v - 3500) as q from t").write_parquet(out),
    "the one task of an order": lambda session, out: session.sql(
        "select v / (v - 3500) as q from t order by q"
    ).write_csv(out),
    "the writer": lambda session, out: session.sql(
        f"copy (select v from t where v >= 0) to '{out}' stored as parquet options ('format.nonsense' '1')"
    ).collect(),
    "a type that the format does not have": lambda session, out: session.sql(
        "select named_struct('a', v) as s from t"
    ).write_csv(out),
}


@pytest.mark.parametrize("write", some_first(FAILING, ["a task", "the writer"]))
def test_a_write_that_fails_leaves_nothing(
    session: Session, place: Path, write: Callable[[Session, Path], object]
) -> None:
    with pytest.raises(UserError) as caught:
        write(session, place / "out")
    assert tree(place) == []
    assert "sparkfusion-" not in str(caught.value), "the user has never seen that directory"
    (place / "out").mkdir()
    (place / "out" / "old").write_text("something")
    with pytest.raises(UserError):
        write(session, place / "out")
    assert tree(place) == ["out", "out/old"]


def test_a_write_that_fails_leaves_no_directory_on_the_way(session: Session, place: Path) -> None:
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql("select v / (v - 3500) as q from t").write_parquet(place / "a" / "b" / "out")
    assert tree(place) == []


def fails_once(marker: Path) -> datafusion.ScalarUDF:
    """bigint → the same bigint; the first batch with 0 in it is lost to the disk."""
    path = str(marker)

    def flaky(values: pa.Array) -> pa.Array:
        if 0 in values.to_pylist():
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return values
            raise OSError(5, "IO error: the disk hiccups")
        return values

    return udf(flaky, [pa.int64()], pa.int64(), "volatile", "flaky")


@pytest.mark.parametrize(
    "query",
    [
        "select flaky(v) as v from t",
        "select flaky(v) as v from t order by v",
        "select flaky(min(v)) as v from t group by v",
    ],
    ids=["in a scan", "below an order", "above a shuffle"],
)
def test_a_task_that_is_tried_again_writes_its_rows_once(session: Session, place: Path, query: str) -> None:
    session.register_udf(fails_once(place.parent / "failed once"))
    assert session.sql(query).write_parquet(place / "out") == TOTAL
    assert (place.parent / "failed once").exists()
    found = values(place / "out")
    assert (found if "order" in query else sorted(found)) == list(range(TOTAL))
    assert names_in(place) == ["out"]


def test_a_cancel_in_the_middle_leaves_nothing(session: Session, place: Path) -> None:
    """Some tasks have written their files by then."""
    outcome: list[BaseException | list[pa.RecordBatch]] = []

    def read() -> None:
        try:
            outcome.append(list(running))
        except BaseException as error:
            outcome.append(error)

    with Gate(place.parent) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda v: v == TOTAL - 1))
        copied = session.lazy_sql(f"copy (select hang(v) as v from t) to '{place}/out' stored as parquet")
        running = copied.stream()
        reader = threading.Thread(target=read)
        reader.start()
        gate.wait_for_arrivals()
        assert "out" not in names_in(place), "nothing is in its place before everything is written"
        assert len(names_in(place)) == 1
        running.cancel()
        reader.join(PROMPT)
        ended = not reader.is_alive()
        left = tree(place)
    reader.join()
    assert ended, "the reader still waited"
    assert isinstance(outcome[0], QueryCancelledError)
    assert left == []
    assert tree(place) == [], "a task that was given up came back"
    assert_usable(session)


def test_a_cancel_before_anything_was_read(session: Session, place: Path) -> None:
    copied = session.lazy_sql(f"copy (select v from t where v >= 0) to '{place}/out' stored as parquet")
    with copied.stream() as running:
        running.cancel()
        with pytest.raises(QueryCancelledError):
            next(running)
    assert tree(place) == []


def test_a_task_that_is_given_up_while_it_writes_makes_nothing_new(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DataFusion makes the directories that a file needs: what was removed must not come back beside the target."""
    staging = SharedHome("query", place)
    store = LocalFrameStore("query", memory_budget=0, directory=str(tmp_path))
    make_context = copy.copy_context

    def too_late(options: Mapping[str, str]) -> SessionContext:
        staging.close()
        return make_context(options)

    monkeypatch.setattr(copy, "copy_context", too_late)
    spec = copy.CopySpec(str(staging.path), str(place / "out"), "STORED AS CSV", {})
    sink = copy.CopySink(TaskKey("query", 1, 0), store, spec)
    sink.write(0, pa.record_batch({"v": [1]}))
    with suppress(Exception):
        sink.finish()
    sink.abort()
    store.close()
    assert tree(place) == []


@pytest.mark.long
def test_rows_of_spark_are_written_by_tasks_too(spark: SparkSession, place: Path) -> None:
    for store in ("local", "spark"):
        with sparkfusion.connect(spark, config={**DISTRIBUTED, **ALL_ON_SPARK, "sparkfusion.store": store}) as session:
            session.register_spark("s", spark.range(0, 90, 1, 3).withColumnRenamed("id", "v"))
            assert session.sql("select v from s where v >= 10").write_parquet(place / store) == 80
            assert sorted(values(place / store)) == list(range(10, 90))
            with pytest.raises(SparkfusionError, match="Divide by zero"):
                session.sql("select 1 / (v - 50) as q from s").write_parquet(place / "failed")
    assert names_in(place) == ["local", "spark"]


def test_a_frame_that_writes_is_not_written_again_by_spark(spark: SparkSession, files: Path, place: Path) -> None:
    """`to_spark` of a COPY runs it now, once; its rows are the count."""
    with sparkfusion.connect(spark, config=DISTRIBUTED) as session:
        session.register_parquet("t", files)
        copied: DataFrame = session.lazy_sql(f"copy (select v from t where v >= 0) to '{place}/out' stored as parquet")
        counted = copied.to_spark()
        assert (
            [row.asDict() for row in counted.collect()]
            == [row.asDict() for row in counted.collect()]
            == [{"count": TOTAL}]
        )
    assert len(values(place / "out")) == TOTAL
