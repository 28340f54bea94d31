"""Shuffles beyond the memory budget go to disk, operators beyond theirs spill; the answers stay the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, TaskFinished
from tests.behaviour.parts import (
    DISTRIBUTED,
    assert_distributed_like_single_node,
    assert_usable,
    part,
    rows_of,
    single_node,
    write_parts,
)
from tests.conftest import Connect

pytestmark = pytest.mark.sample("local", "flight", "spark-local")  # Spark has its own processes for tasks

JOIN = "select count(*) as n, sum(a.v) as s from wide a join wide b on a.v = b.v and a.s = b.s"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40,000 rows with a string each, in four files: about 5 MB as frames."""
    home = tmp_path_factory.mktemp("wide")
    for number in range(4):
        values = range(number * 10_000, (number + 1) * 10_000)
        table = pa.table(
            {"v": pa.array(values, pa.int64()), "s": [f"{value * 7919 % 40_009:0100d}" for value in values]}
        )
        pq.write_table(table, home / f"{number}.parquet", row_group_size=1000)
    return home


@pytest.fixture
def open_wide(connect: Connect, wide: Path) -> Callable[[dict[str, object]], Session]:
    def open_session(config: dict[str, object]) -> Session:
        session = connect(DISTRIBUTED | {"sparkfusion.slots": 2} | config)
        session.register_parquet("wide", wide)
        return session

    return open_session


def _frame_bytes(*places: Path) -> int:
    """Bytes of all frame files of this process under these places, now."""
    found = 0
    for place in places:
        for home in place.glob(f"sparkfusion-{os.getpid()}-*"):
            found += sum(file.stat().st_size for file in home.rglob("*.arrow") if file.exists())
    return found


class _Usage:
    """The most that lay in memory-backed storage and on disk, looked at whenever a task has finished."""

    def __init__(self, disk: Path) -> None:
        self._disk = disk
        self.memory_peak = 0
        self.disk_peak = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, TaskFinished):
            self.memory_peak = max(self.memory_peak, _frame_bytes(Path("/dev/shm")))
            self.disk_peak = max(self.disk_peak, _frame_bytes(self._disk))


ON_SPARK = "on Spark memory is used where no directory was chosen: see tests/spark/test_store.py"


@pytest.mark.runners("local", reason=ON_SPARK)
@pytest.mark.parametrize("budget", [0, 1, 256 * 1024])
def test_shuffle_larger_than_the_memory_budget_goes_to_disk(
    open_wide: Callable[[dict[str, object]], Session], tmp_path: Path, budget: int
) -> None:
    session = open_wide({"sparkfusion.store_memory_bytes": budget, "sparkfusion.store_dir": tmp_path})
    usage = _Usage(tmp_path)
    session.subscribe(usage)
    assert_distributed_like_single_node(session.sql(JOIN))
    assert usage.disk_peak > 1_000_000
    if budget == 0:
        assert usage.memory_peak == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.runners("local", reason=ON_SPARK)
def test_shuffle_within_the_budget_stays_in_memory(
    open_wide: Callable[[dict[str, object]], Session], tmp_path: Path
) -> None:
    session = open_wide({"sparkfusion.store_memory_bytes": "256MiB", "sparkfusion.store_dir": tmp_path})
    usage = _Usage(tmp_path)
    session.subscribe(usage)
    assert_distributed_like_single_node(session.sql(JOIN))
    assert usage.memory_peak > 1_000_000
    assert usage.disk_peak == 0


@pytest.mark.parametrize(
    "query",
    [
        "select v, s, count(*) as n from wide group by v, s",
        "select v, s from wide order by s, v",
    ],
    ids=["aggregation", "sort"],
)
def test_operators_with_little_memory_spill(
    open_wide: Callable[[dict[str, object]], Session], tmp_path: Path, query: str
) -> None:
    session = open_wide(
        {
            "sparkfusion.task_memory_bytes": "4MiB",
            "sparkfusion.store_dir": tmp_path,
            "datafusion.execution.target_partitions": 2,
            "datafusion.execution.batch_size": 256,
            "datafusion.execution.sort_spill_reservation_bytes": 64 * 1024,
            "datafusion.execution.sort_in_place_threshold_bytes": 64 * 1024,
        }
    )
    frame = session.sql(query)
    shown = json.loads(frame.explain_text(analyze=True, format="json"))
    spilled = sum(operator["spilled_bytes"] for stage in shown["metrics"] for operator in stage["operators"])
    assert spilled > 0
    assert "spilled" in frame.explain_text(analyze=True)
    if "order by" in query:
        assert frame.collect().to_pylist() == single_node(frame).to_pylist()
    else:
        assert rows_of(frame.collect()) == rows_of(single_node(frame))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_compressed_frames(open_wide: Callable[[dict[str, object]], Session], compression: str) -> None:
    session = open_wide({"sparkfusion.frame_compression": compression})
    written: list[int] = []
    session.subscribe(lambda event: written.append(event.bytes) if isinstance(event, TaskFinished) else None)
    assert_distributed_like_single_node(session.sql(JOIN))
    if compression == "none":
        assert sum(written) > 4_500_000
    else:
        assert sum(written) < 3_500_000
    assert_distributed_like_single_node(session.sql("select v, s from wide where v % 3 = 0"))  # rows for the reader


ODD_NAMES = ["with space", "ünïcödé 表", "per%41cent", "a#b?c", "qu'ote\"s", "star*", "[x]"]


def test_store_directory_of_any_name(connect: Connect, tmp_path: Path) -> None:
    _keep_frames_in(" ".join(ODD_NAMES), connect, tmp_path)


@pytest.mark.runners("local", reason="shows which part of the name is the reason, if the test above fails")
@pytest.mark.parametrize("name", ODD_NAMES)
def test_store_directory_of_each_name(connect: Connect, tmp_path: Path, name: str) -> None:
    _keep_frames_in(name, connect, tmp_path)


def _keep_frames_in(name: str, connect: Connect, tmp_path: Path) -> None:
    store = tmp_path / name
    store.mkdir()
    session = connect(
        DISTRIBUTED
        | {
            "sparkfusion.store_dir": store,
            "sparkfusion.store_memory_bytes": 0,
            "sparkfusion.memory_table_bytes": 1,
        }
    )
    session.register_parquet("t", write_parts(tmp_path))
    session.from_arrow(part(0), "m")
    assert_distributed_like_single_node(session.sql("select k, count(*) as n from t group by k"))
    assert sum(session.sql("select k, count(*) as n from m group by k").to_pydict()["n"]) == 1000
    session.close()
    assert list(store.iterdir()) == []


def test_relative_store_directory(connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("store").mkdir()
    session = connect(
        DISTRIBUTED
        | {
            "sparkfusion.store_dir": "store",
            "sparkfusion.store_memory_bytes": 0,
            "sparkfusion.memory_table_bytes": 1,
        }
    )
    session.register_parquet("t", write_parts(tmp_path))
    assert_distributed_like_single_node(session.sql("select k, count(*) as n from t group by k"))
    assert_usable(session)


def test_store_directory_set_later_is_used_for_memory_tables(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1})
    session.config["sparkfusion.store_dir"] = tmp_path
    session.from_arrow(part(0), "m")
    session.sql("select k, count(*) as n from m group by k").collect()
    assert [path.name for path in tmp_path.iterdir()] != []
    session.close()
    assert list(tmp_path.iterdir()) == []
