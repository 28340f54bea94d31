"""Where frames are on Spark: in memory up to a budget, on disk beyond, or in a directory that the user chose."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.exchange.owned import DIRECTORY_PREFIX, SharedHome
from tests.behaviour.parts import DISTRIBUTED
from tests.behaviour.probes import PATIENCE, Gate, holding_udf
from tests.conftest import Connect
from tests.spark.watch import frame_files

SHUFFLED_THEN_HELD = "select hang(count(*)) as n from (select s, count(*) as n from wide group by s)"
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 rows with a string each, in four files: about 2.5 MB as frames."""
    home = tmp_path_factory.mktemp("wide")
    for number in range(4):
        values = range(number * 5000, (number + 1) * 5000)
        strings = [f"{value * 7919 % 40_009:0100d}" for value in values]
        pq.write_table(pa.table({"v": pa.array(values, pa.int64()), "s": strings}), home / f"{number}.parquet")
    return home


@pytest.fixture
def open_wide(connect: Connect, wide: Path) -> Callable[[dict[str, object]], Session]:
    def open_session(config: dict[str, object]) -> Session:
        session = connect(DISTRIBUTED | config)
        session.register_parquet("wide", wide)
        return session

    return open_session


@pytest.fixture
def frames_of(
    open_wide: Callable[[dict[str, object]], Session], tmp_path: Path
) -> Callable[[dict[str, object], Path], tuple[int, int]]:
    """Bytes of the frames of a query under these settings, in memory and in a directory, while its head waits."""

    def look(config: dict[str, object], directory: Path) -> tuple[int, int]:
        session = open_wide(config)
        with Gate(tmp_path) as gate:
            session.register_udf(holding_udf(gate, "hang"))
            with session.sql(SHUFFLED_THEN_HELD).stream() as rows:
                gate.wait_for_arrivals()
                sizes = tuple(sum(f.stat().st_size for f in frame_files(place)) for place in (MEMORY, directory))
                gate.open()
                assert [row for batch in rows for row in batch.to_pylist()] == [{"n": 20_000}]
        assert frame_files(MEMORY, directory) == []
        return sizes[0], sizes[1]

    return look


FramesOf = Callable[[dict[str, object], Path], tuple[int, int]]


def temporary() -> Path:
    return Path(tempfile.gettempdir())


def test_frames_are_in_memory(frames_of: FramesOf) -> None:
    in_memory, on_disk = frames_of({}, temporary())
    assert in_memory > 2_000_000
    assert on_disk == 0


def test_frames_beyond_the_budget_go_to_disk(frames_of: FramesOf) -> None:
    budget = 500_000
    in_memory, on_disk = frames_of({"sparkfusion.store_memory_bytes": budget}, temporary())
    # every task has its share, and exceeds it by one frame per output partition at most
    assert 0 < in_memory < 3 * budget
    assert on_disk > 500_000


def test_without_a_budget_nothing_is_in_memory(frames_of: FramesOf) -> None:
    in_memory, on_disk = frames_of({"sparkfusion.store_memory_bytes": 0}, temporary())
    assert in_memory == 0
    assert on_disk > 2_000_000


def test_a_chosen_directory_has_everything_and_is_empty_afterwards(frames_of: FramesOf, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    in_memory, there = frames_of({"sparkfusion.store_dir": str(store)}, store)
    assert in_memory == 0
    assert there > 2_000_000
    assert list(store.iterdir()) == []


def test_operators_spill_into_the_querys_directory(
    open_wide: Callable[[dict[str, object]], Session], tmp_path: Path
) -> None:
    """And not beside it: a Python worker that Spark kills does not remove what it spilled."""
    session = open_wide(
        {
            "sparkfusion.task_memory_bytes": "3MiB",
            "datafusion.execution.sort_spill_reservation_bytes": 64 * 1024,
            "datafusion.execution.batch_size": 1000,
        }
    )
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        sql = "select hang(v) as v, row_number() over (partition by v % 2 order by s desc, v) as r from wide"
        with session.sql(sql).stream() as rows:
            gate.wait_for_arrivals()  # the sort gives its first rows: what it spilled is there
            spilled = [path for path in temporary().rglob("datafusion-*") if path.is_dir()]
            gate.open()
            assert sum(batch.num_rows for batch in rows) == 20_000
            reports = rows.reports()
    assert sum(operator.spilled_bytes for report in reports for operator in report.operators) > 0
    assert spilled
    assert {path.relative_to(temporary()).parts[0].startswith(DIRECTORY_PREFIX) for path in spilled} == {True}


def test_a_home_goes_while_a_task_that_was_given_up_still_writes(tmp_path: Path) -> None:
    """Spark kills the worker of a cancelled task two seconds later; until then it makes files."""
    home = SharedHome("query", tmp_path)
    begun, over = threading.Event(), []

    def write() -> None:
        with suppress(FileNotFoundError, FileExistsError):  # it went before or after `mkdir` looked
            for number in range(20_000):
                attempt = home.path / str(number % 100)
                attempt.mkdir(exist_ok=True)
                (attempt / f"{number}.arrow").touch()
                begun.set()
        over.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(PATIENCE)
    home.close()
    writer.join()
    assert over[0] < 19_999
    assert list(tmp_path.iterdir()) == []
    home.close()
