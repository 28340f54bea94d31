"""`make soak`: mixed queries in one session for a while; what the process holds has to stay flat.

Every round runs each kind of query once. Files in the temporary directory, memory, threads and open files are shown
for this process and its workers. The second fifth of the rounds, when everything has been used, is compared with the
last.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datafusion import udf

import sparkfusion
from sparkfusion import Session, SparkfusionError, WorkUnit, WorkUnitFeedProvider
from sparkfusion.feed.provider import FeedContext

_FILES = 4
_ROWS = 50_000
_SLACK = 1.05
"""Growth of memory that is not one: the allocator keeps some of what it was given."""

Kind = Callable[[Session], None]


@dataclass(frozen=True)
class Held:
    """What processes hold at one moment."""

    files: int
    megabytes: float
    threads: int
    descriptors: int

    @classmethod
    def now(cls, directory: Path, processes: list[psutil.Process]) -> Held:
        return cls(
            sum(len(names) + len(files) for _, names, files in os.walk(directory)),
            sum(each.memory_info().rss for each in processes) / 1e6,
            sum(each.num_threads() for each in processes),
            sum(each.num_fds() for each in processes),
        )


class Units(WorkUnitFeedProvider):
    """Found work: numbers that a reader makes rows of."""

    def schema(self) -> pa.Schema:
        return pa.schema([("n", pa.int64())])

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        del partition, context
        for number in range(20):
            yield WorkUnit(number)

    def reader(self, unit: WorkUnit, context: object) -> pa.RecordBatch:
        del context
        return pa.record_batch({"n": pa.array([unit.payload] * 10, pa.int64())})


def _run(sql: str) -> Kind:
    def kind(session: Session) -> None:
        session.sql(sql).collect()

    return kind


def _half_read(session: Session) -> None:
    with session.sql("select * from t").stream() as stream:
        next(iter(stream))


def _forgotten(session: Session) -> None:
    next(iter(session.sql("select * from t").stream()))


def _failing(session: Session) -> None:
    with suppress(SparkfusionError):
        session.sql("select sum(10 / (x - 7)) from t").collect()


def _misspelt(session: Session) -> None:
    with suppress(SparkfusionError):
        session.sql("select nothing from t").collect()


def _memory_table(session: Session) -> None:
    rows = pa.table({"x": range(20_000), "k": [time.monotonic_ns()] * 20_000})
    session.from_arrow(rows, "rows")
    session.sql("select k, count(*) from rows group by k").collect()
    session.deregister_table("rows")


def _written(session: Session) -> None:
    with tempfile.TemporaryDirectory() as place:
        session.sql(f"copy (select * from t where k = 3) to '{place}/out/' stored as parquet").collect()


KINDS: dict[str, Kind] = {
    "aggregate": _run("select k, count(*), sum(x) from t group by k"),
    "join": _run("select count(*) from t a join t b on a.x = b.x"),
    "sort": _run("select x from t order by x desc limit 10"),
    "spilling sort": _run("select * from t order by s, x"),
    "window": _run("select max(n) from (select row_number() over (partition by k order by x) as n from t)"),
    "single node": _run("select value from range(10)"),
    "subquery": _run("select count(*) from t where x > (select avg(x) from t)"),
    "function": _run("select sum(twice(x)) from t"),
    "feed": _run("select n, count(*) from fed group by n"),
    "half-read": _half_read,
    "forgotten": _forgotten,
    "failing": _failing,
    "misspelt": _misspelt,
    "memory table": _memory_table,
    "written": _written,
}


def open_session(target: str, table: Path) -> Session:
    settings = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.task_memory_bytes": 16_000_000}
    session = sparkfusion.connect(target, config=settings)
    session.register_parquet("t", str(table))
    session.register_udf(udf(lambda values: pc.multiply(values, 2), [pa.int64()], pa.int64(), "immutable", "twice"))
    session.register_feed("fed", Units())
    return session


def write_table(place: Path) -> None:
    place.mkdir()
    for part in range(_FILES):
        rows = range(part * _ROWS, (part + 1) * _ROWS)
        columns = {"x": rows, "k": [x % 50 for x in rows], "s": [f"{x * 7919 % 1000003:050}" for x in rows]}
        pq.write_table(pa.table(columns), place / f"{part}.parquet")


@contextmanager
def _own_temporary_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        os.environ["TMPDIR"] = tempfile.tempdir = made
        yield Path(made)
    tempfile.tempdir = None


def soak(target: str, seconds: float, kinds: dict[str, Kind], workers: list[int]) -> list[Held]:
    with _own_temporary_directory() as directory:
        write_table(directory / "t")
        processes = [psutil.Process(), *map(psutil.Process, workers)]
        seen: list[Held] = []
        until = time.monotonic() + seconds
        with open_session(target, directory / "t") as session:
            while time.monotonic() < until:
                for kind in kinds.values():
                    kind(session)
                seen.append(Held.now(directory, processes))
                print(f"{len(seen):5}", *(f"{value:8.0f}" for value in astuple(seen[-1])), flush=True)
        return seen


def growth(seen: list[Held]) -> dict[str, tuple[float, float]]:
    """What there was early and late, for what has grown."""
    part = max(1, len(seen) // 5)
    grown = {}
    for field in fields(Held):
        early, late = ([getattr(each, field.name) for each in some] for some in (seen[part : 2 * part], seen[-part:]))
        slack = _SLACK if field.name == "megabytes" else 1.0
        if early and statistics.median(late) > statistics.median(early) * slack:
            grown[field.name] = (statistics.median(early), statistics.median(late))
    return grown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--target", default="local")
    parser.add_argument("--worker", type=int, action="append", default=[], help="process of a worker, counted too")
    parser.add_argument("--only", choices=KINDS, help="one kind of query")
    arguments = parser.parse_args()
    kinds = {name: kind for name, kind in KINDS.items() if arguments.only in (None, name)}
    print("round", *(f"{field.name:>8}" for field in fields(Held)))
    grown = growth(soak(arguments.target, arguments.seconds, kinds, arguments.worker))
    for name, (early, late) in grown.items():
        print(f"{name} grew from {early:.0f} to {late:.0f}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
