"""Frame files as rows: any order of arrival, nothing missing unnoticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sparkfusion.errors import ExternalError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.runner.spark import chunks
from sparkfusion.runner.spark.chunks import ChunkSpool, Origin, chunks_of, failure_of, is_chunk

ORIGIN = Origin(exchange=3, task=1, attempt=0, spark_attempt=17)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 10)


def written(tmp_path: Path, sizes: list[tuple[int, int]]) -> list[FrameFile]:
    """Files of so many bytes, for (partition, size)."""
    made = []
    for number, (partition, size) in enumerate(sizes):
        path = tmp_path / f"{number}.arrow"
        path.write_bytes(random.Random(number).randbytes(size))
        made.append(FrameFile(str(path), partition, rows=1, bytes=size))
    return made


def spool_of(tmp_path: Path, rows: list[bytes]) -> ChunkSpool:
    directory = tmp_path / "spool"
    directory.mkdir()
    spool = ChunkSpool(directory)
    for row in rows:
        spool.add(row)
    return spool


def test_files_come_out_as_they_went_in_whatever_the_order_of_rows(tmp_path: Path) -> None:
    files = written(tmp_path, [(0, 25), (2, 10), (0, 1), (2, 99)])
    rows = [row for _, row in chunks_of(files, ORIGIN, partitions=3)]
    assert all(is_chunk(row) for row in rows)
    random.Random(5).shuffle(rows)
    spool = spool_of(tmp_path, rows)
    for partition in range(3):
        sent = [Path(file.path).read_bytes() for file in files if file.partition == partition]
        got = spool.files(ORIGIN, partition)
        assert [Path(file.path).read_bytes() for file in got] == sent
        assert [file.size for file in got] == [len(data) for data in sent]


def test_rows_are_addressed_to_their_partition(tmp_path: Path) -> None:
    files = written(tmp_path, [(1, 25)])
    assert [partition for partition, _ in chunks_of(files, ORIGIN, partitions=2)] == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("missing", range(5))
def test_a_missing_row_is_noticed(tmp_path: Path, missing: int) -> None:
    files = written(tmp_path, [(0, 25), (0, 10)])
    rows = [row for _, row in chunks_of(files, ORIGIN, partitions=1)]
    assert len(rows) == 5
    spool = spool_of(tmp_path, rows[:missing] + rows[missing + 1 :])
    with pytest.raises(ExternalError, match="task 1 for exchange 3 is incomplete"):
        spool.files(ORIGIN, 0)


def test_rows_of_two_attempts_stay_apart(tmp_path: Path) -> None:
    other = Origin(exchange=3, task=1, attempt=0, spark_attempt=18)
    first, second = written(tmp_path, [(0, 25), (0, 30)])
    rows = [row for _, row in chunks_of([first], ORIGIN, 1)] + [row for _, row in chunks_of([second], other, 1)]
    spool = spool_of(tmp_path, rows)
    assert spool.origins(3, 1, 0) == [ORIGIN, other]
    assert [file.size for file in spool.files(other, 0)] == [30]


def test_a_failure_reaches_every_partition(tmp_path: Path) -> None:
    rows = list(failure_of(b"divide by zero", ORIGIN, partitions=3))
    assert [partition for partition, _ in rows] == [0, 1, 2]
    assert spool_of(tmp_path, [rows[1][1]]).error(ORIGIN) == b"divide by zero"
