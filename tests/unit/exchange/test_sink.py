"""Sinks and the local store: what a task leaves behind, and what it does not."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext

from sparkfusion.errors import StoreFullError
from sparkfusion.exchange.channel import Channel
from sparkfusion.exchange.frames import FrameFileWriter, compact, has_dictionaries
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.exchange.sink import ConsumerSink, FileSink
from sparkfusion.exchange.store import LocalFrameStore
from sparkfusion.ids import TaskKey

KEY = TaskKey("q", 1, 0)
BIG = 10**9


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for memory-backed storage."""
    directory = tmp_path / "memory"
    directory.mkdir()
    monkeypatch.setattr("sparkfusion.exchange.store.SHARED_MEMORY", directory)
    return directory


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    directory = tmp_path / "disk"
    directory.mkdir()
    return directory


@pytest.fixture
def store(disk: Path) -> Iterator[LocalFrameStore]:
    """A store that keeps everything on disk."""
    made = LocalFrameStore("q", memory_budget=0, directory=str(disk))
    yield made
    made.close()


def numbers(start: int = 0, count: int = 1000) -> pa.RecordBatch:
    return pa.record_batch({"a": list(range(start, start + count))})


def read(manifest: Manifest, partition: int = 0) -> pa.Table:
    tables = [pa.ipc.open_file(file.path).read_all() for file in manifest.files if file.partition == partition]
    return pa.concat_tables(tables)


def left_in(*directories: Path) -> list[Path]:
    return [path for directory in directories for path in directory.rglob("*.arrow")]


# ---- file sink


def test_each_partition_with_rows_gets_a_file(store: LocalFrameStore) -> None:
    sink = FileSink(KEY, store)
    sink.write(2, numbers(0, 10))
    sink.write(0, numbers(10, 5))
    sink.write(1, numbers(0, 0))
    sink.write(2, numbers(100, 10))
    manifest = sink.finish()
    assert [(file.partition, file.rows) for file in manifest.files] == [(0, 5), (2, 20)]
    assert read(manifest, 2).column("a").to_pylist() == [*range(10), *range(100, 110)]
    assert all(file.bytes == Path(file.path).stat().st_size for file in manifest.files)


def test_nothing_written_means_no_file(store: LocalFrameStore, disk: Path) -> None:
    assert FileSink(KEY, store).finish() == Manifest(KEY)
    assert left_in(disk) == []


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_datafusion_reads_the_files(store: LocalFrameStore, compression: str) -> None:
    sink = FileSink(KEY, store, compression)
    sink.write(0, numbers())
    (file,) = sink.finish().files
    context = SessionContext()
    context.register_arrow("t", file.path)
    assert context.sql("select sum(a) as s from t").to_pydict() == {"s": [sum(range(1000))]}


@pytest.mark.parametrize("budget", [0, 10_000, BIG])
@pytest.mark.parametrize("finished", [False, True])
def test_abort_leaves_nothing(disk: Path, memory: Path, finished: bool, budget: int) -> None:
    store = LocalFrameStore("q", memory_budget=budget, directory=str(disk))
    sink = FileSink(KEY, store)
    for partition in (0, 1, 1):
        sink.write(partition, numbers())
    if finished:
        sink.finish()
    assert left_in(disk, memory)
    sink.abort()
    assert left_in(disk, memory) == []
    store.close()


def test_dictionaries_that_change_go_into_one_file(store: LocalFrameStore) -> None:
    sink = FileSink(KEY, store)
    for words in (["a", "b", "a"], ["c", "b"], ["d", None]):
        sink.write(0, pa.record_batch({"d": pa.array(words).dictionary_encode()}))
    manifest = sink.finish()
    assert [file.rows for file in manifest.files] == [7]
    table = read(manifest)
    assert table.column("d").to_pylist() == ["a", "b", "a", "c", "b", "d", None]
    assert pa.types.is_dictionary(table.schema.field("d").type)


def test_dictionaries_inside_lists_are_kept(store: LocalFrameStore) -> None:
    sink = FileSink(KEY, store)
    for words in (["a", "b"], ["c"]):
        values = pa.array(words).dictionary_encode()
        offsets = pa.array(range(len(words) + 1), pa.int32())
        sink.write(0, pa.record_batch({"l": pa.ListArray.from_arrays(offsets, values)}))
    assert read(sink.finish()).column("l").to_pylist() == [["a"], ["b"], ["c"]]


def test_small_dictionary_indexes_do_not_overflow(store: LocalFrameStore) -> None:
    """Each frame's dictionary fits its 8-bit index; all of them together do not."""
    sink = FileSink(KEY, store)
    expected = []
    for start in (0, 100):
        words = [f"w{i}" for i in range(start, start + 100)]
        expected += words
        indexes = pa.array(range(100), pa.int8())
        sink.write(0, pa.record_batch({"d": pa.DictionaryArray.from_arrays(indexes, pa.array(words))}))
    assert read(sink.finish()).column("d").to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.int64(), False),
        (pa.dictionary(pa.int32(), pa.string()), True),
        (pa.list_(pa.dictionary(pa.int32(), pa.string())), True),
        (pa.struct([("x", pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string())))]), True),
        (pa.struct([("x", pa.list_view(pa.int64()))]), False),
    ],
)
def test_has_dictionaries(kind: pa.DataType, expected: bool) -> None:
    assert has_dictionaries(pa.schema([("c", kind)])) is expected


def test_zero_columns_keep_their_rows(store: LocalFrameStore) -> None:
    sink = FileSink(KEY, store)
    sink.write(0, numbers(0, 7).select([]))
    manifest = sink.finish()
    assert manifest.rows == 7
    assert sum(batch.num_rows for batch in _batches(manifest)) == 7


def _batches(manifest: Manifest) -> list[pa.RecordBatch]:
    readers = [pa.ipc.open_file(file.path) for file in manifest.files]
    return [reader.get_batch(i) for reader in readers for i in range(reader.num_record_batches)]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_do_not_drag_along_what_they_do_not_show(store: LocalFrameStore, kind: pa.DataType) -> None:
    long = pa.array([f"{i:0200}".encode() for i in range(2000)])
    if kind == pa.string_view():
        long = long.cast(pa.string())
    few = pa.record_batch({"s": long.cast(kind)}).slice(1000, 4)
    sink = FileSink(KEY, store)
    sink.write(0, few)
    manifest = sink.finish()
    assert read(manifest).column("s").to_pylist() == few.column("s").to_pylist()
    assert manifest.bytes < 10_000


def test_compact_leaves_what_is_full_alone() -> None:
    batch = pa.record_batch({"s": pa.array(["x" * 40] * 10).cast(pa.string_view()), "n": range(10)})
    assert compact(batch) is batch


# ---- store


def test_frames_go_to_memory_then_to_disk(disk: Path, memory: Path) -> None:
    store = LocalFrameStore("q", memory_budget=10_000, directory=str(disk))
    sink = FileSink(KEY, store)
    for start in range(4):
        sink.write(0, numbers(start * 1000))  # 8,000 bytes each
    manifest = sink.finish()
    first, second = manifest.files
    assert (Path(first.path).is_relative_to(memory), first.rows) == (True, 2000)
    assert (Path(second.path).is_relative_to(disk), second.rows) == (True, 2000)
    assert read(manifest).column("a").to_pylist() == list(range(4000))
    store.close()


@pytest.mark.parametrize("finished", [False, True], ids=["aborted", "finished and discarded"])
def test_what_is_thrown_away_gives_its_memory_back(disk: Path, finished: bool) -> None:
    store = LocalFrameStore("q", memory_budget=10_000, directory=str(disk))
    for attempt in range(5):
        key = TaskKey("q", 1, 0, attempt)
        sink = FileSink(key, store)
        sink.write(0, numbers())
        if finished:
            sink.finish()
            store.discard(key)
            store.discard(key)
        else:
            sink.abort()
    assert store.has_memory()
    store.close()


def test_close_removes_everything(disk: Path, memory: Path) -> None:
    store = LocalFrameStore("q", memory_budget=10_000, directory=str(disk))
    sink = FileSink(KEY, store)
    for _ in range(4):
        sink.write(0, numbers())
    sink.finish()
    assert list(disk.iterdir())
    assert list(memory.iterdir())
    store.close()
    store.close()
    assert list(disk.iterdir()) == list(memory.iterdir()) == []


def test_a_missing_directory_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(StoreFullError) as raised:
        LocalFrameStore("q", memory_budget=0, directory=str(tmp_path / "missing"))
    assert "sparkfusion.store_dir" in (raised.value.hint or "")


@pytest.mark.parametrize("method", ["write", "close"])
def test_a_full_disk_says_where_and_what_to_do(
    store: LocalFrameStore, disk: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FrameFileWriter, method, full)
    sink = FileSink(KEY, store)

    def write_all() -> None:
        sink.write(0, numbers())
        sink.finish()

    with pytest.raises(StoreFullError) as raised:
        write_all()
    assert str(disk) in raised.value.message
    assert "sparkfusion.store_dir" in (raised.value.hint or "")
    assert not raised.value.retryable
    sink.abort()
    assert left_in(disk) == []


# ---- channel sink and manifest


def test_a_channel_sink_hands_frames_on() -> None:
    channel = Channel(2)
    sink = ConsumerSink(KEY, channel.put)
    sink.write(0, numbers())
    assert channel.get() == numbers()
    assert sink.finish() == Manifest(KEY)


def test_a_manifest_adds_up() -> None:
    manifest = Manifest(KEY, (FrameFile("/a", 0, 3, 30), FrameFile("/b", 1, 4, 40), FrameFile("/c", 0, 5, 50)))
    assert (manifest.rows, manifest.bytes) == (12, 120)
    assert [file.path for file in manifest.files if file.partition == 0] == ["/a", "/c"]
