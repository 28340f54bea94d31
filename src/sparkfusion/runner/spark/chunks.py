"""Frame files as rows, for stores without shared files: cut into chunks by the producer, and joined by the consumer.

Every row says where it belongs, so rows may arrive in any order. The last row of an output partition says how many
there are, so a missing row is noticed. Instead, it may hold the error because of which there is no output.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkfusion.errors import ExternalError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.ids import ExchangeId, SourceFile

CHUNK_BYTES = 4 * 1024 * 1024
_MAGIC = b"SFch"
_DATA, _END = 0, 1
_HEADER = struct.Struct("<4sBiiiqiiqq")


@dataclass(frozen=True, order=True)
class Origin:
    """Which attempt at which producer task a row comes from. `spark_attempt` is Spark's own count, never reused."""

    exchange: ExchangeId
    task: int
    attempt: int
    spark_attempt: int


def is_chunk(row: bytes) -> bool:
    return row.startswith(_MAGIC)


def chunks_of(files: Iterable[FrameFile], origin: Origin, partitions: int) -> Iterator[tuple[int, bytes]]:
    """(partition, row) for everything that an attempt wrote, then the last row of each partition."""
    counts = [0] * partitions
    for file in files:
        number = counts[file.partition]
        counts[file.partition] += 1
        with open(file.path, "rb") as source:
            offset = 0
            while data := source.read(CHUNK_BYTES):
                yield file.partition, _header(_DATA, origin, file.partition, number, offset, file.bytes) + data
                offset += len(data)
    for partition, count in enumerate(counts):
        yield partition, _header(_END, origin, partition, count, 0, 0)


def failure_of(error: bytes, origin: Origin, partitions: int) -> Iterator[tuple[int, bytes]]:
    """(partition, row) that tell every consumer why there is no output."""
    for partition in range(partitions):
        yield partition, _header(_END, origin, partition, 0, 0, len(error)) + error


def _header(kind: int, origin: Origin, partition: int, file: int, offset: int, size: int) -> bytes:
    fields = (origin.exchange, origin.task, origin.attempt, origin.spark_attempt, partition, file, offset, size)
    return _HEADER.pack(_MAGIC, kind, *fields)


class ChunkSpool:
    """The files of the rows that one task receives, below a directory that the caller removes. One thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[tuple[Origin, int], dict[int, tuple[int, int]]] = defaultdict(dict)
        self._ends: dict[tuple[Origin, int], int] = {}
        self._errors: dict[Origin, bytes] = {}

    def add(self, row: bytes) -> None:
        _, kind, exchange, task, attempt, spark_attempt, partition, file, offset, size = _HEADER.unpack_from(row)
        origin = Origin(exchange, task, attempt, spark_attempt)
        if kind == _END:
            self._ends[origin, partition] = file
            if size:
                self._errors[origin] = row[_HEADER.size :]
            return
        got, _ = self._sizes[origin, partition].get(file, (0, 0))
        path = self._path(origin, partition, file)
        with open(path, "r+b" if path.exists() else "wb") as target:
            target.seek(offset)
            target.write(memoryview(row)[_HEADER.size :])
        self._sizes[origin, partition][file] = (got + len(row) - _HEADER.size, size)

    def origins(self, exchange: ExchangeId, task: int, attempt: int) -> list[Origin]:
        """Every Spark attempt at this producer task of which a row came."""
        found = {origin for origin, _ in self._ends}
        return sorted(o for o in found if (o.exchange, o.task, o.attempt) == (exchange, task, attempt))

    def has(self, origin: Origin) -> bool:
        return any(each == origin for each, _ in self._ends)

    def error(self, origin: Origin) -> bytes | None:
        return self._errors.get(origin)

    def files(self, origin: Origin, partition: int) -> list[SourceFile]:
        """The whole files of one output partition of one attempt, in the order they were written."""
        sizes = self._sizes.get((origin, partition), {})
        expected = self._ends.get((origin, partition))
        if expected != len(sizes) or any(got != size for got, size in sizes.values()):
            raise ExternalError(f"the output of task {origin.task} for exchange {origin.exchange} is incomplete")
        return [SourceFile(str(self._path(origin, partition, number)), sizes[number][1]) for number in sorted(sizes)]

    def _path(self, origin: Origin, partition: int, file: int) -> Path:
        parts = (origin.exchange, origin.task, origin.attempt, origin.spark_attempt, partition, file)
        return self._directory / ("-".join(map(str, parts)) + ".arrow")
