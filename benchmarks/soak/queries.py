"""The kinds of queries of a soak. Plain DataFusion runs the same ones, but for feeds."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, ScalarUDF, SessionConfig, SessionContext, udf

import sparkfusion
from sparkfusion import WorkUnit, WorkUnitFeedProvider
from sparkfusion.feed.provider import FeedContext

_FILES = 4
_ROWS = 50_000
_SMALL, _LARGE = 20_000, 200_000
_MEMORY = 64_000_000


class Engine(Protocol):
    """What runs the queries: our session, or DataFusion's own."""

    session: Any

    def open_stream(self, sql: str) -> Any: ...


class Ours:
    def __init__(self, target: str, table: Path) -> None:
        settings = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.task_memory_bytes": _MEMORY // 4}
        self.session = sparkfusion.connect(target, config=settings)
        self.session.register_parquet("t", str(table))
        self.session.register_udf(_twice())
        self.session.register_feed("fed", Units())

    def open_stream(self, sql: str) -> Any:
        return self.session.sql(sql).stream()


class Plain:
    def __init__(self, table: Path) -> None:
        runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(4 * _MEMORY)  # all share it
        self.session = SessionContext(SessionConfig(), runtime)
        self.session.register_parquet("t", str(table))
        self.session.register_udf(_twice())

    def open_stream(self, sql: str) -> Any:
        return self.session.sql(sql).execute_stream()


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


Kind = Callable[[Engine], None]


def _run(sql: str) -> Kind:
    def kind(engine: Engine) -> None:
        engine.session.sql(sql).collect()

    return kind


def _half_read(engine: Engine) -> None:
    stream = engine.open_stream("select * from t")
    next(iter(stream))
    if hasattr(stream, "close"):
        stream.close()


def _forgotten(engine: Engine) -> None:
    next(iter(engine.open_stream("select * from t")))


def _failing(engine: Engine) -> None:
    with suppress(Exception):
        engine.session.sql("select sum(10 / (x - 7)) from t").collect()


def _misspelt(engine: Engine) -> None:
    with suppress(Exception):
        engine.session.sql("select nothing from t").collect()


def _memory_table(rows: int, *, nested: bool = False) -> Kind:
    def kind(engine: Engine) -> None:
        columns: dict[str, Any] = {"x": range(rows), "k": pa.array([time.monotonic_ns()] * rows)}
        columns |= {"pair": pa.StructArray.from_arrays([columns["k"]], ["of"])} if nested else {}
        engine.session.from_arrow(pa.table(columns), "rows")
        engine.session.sql("select k, count(*), max(x) from rows group by k").collect()
        engine.session.deregister_table("rows")

    return kind


def _created_table(engine: Engine) -> None:
    engine.session.sql("create or replace table made as select * from t").collect()
    engine.session.sql("select k, count(*) from made group by k").collect()
    engine.session.sql("drop table made").collect()


def _cached(engine: Engine) -> None:
    engine.session.sql("select * from t").cache().count()


def _written(engine: Engine) -> None:
    with tempfile.TemporaryDirectory() as place:
        engine.session.sql(f"copy (select * from t where k = 3) to '{place}/out/' stored as parquet").collect()


def _new_feed(engine: Engine) -> None:
    engine.session.register_feed("another", Units())
    engine.session.sql("select n, count(*) from another group by n").collect()
    engine.session.sql("drop table another").collect()


KINDS: dict[str, Kind] = {
    "aggregate": _run("select k, count(*), sum(x) from t group by k"),
    "join": _run("select count(*) from t a join t b on a.x = b.x"),
    "sort": _run("select x from t order by x desc limit 10"),
    "spilling sort": _run("select * from t order by s, x"),
    "window": _run("select max(n) from (select row_number() over (partition by k order by x) as n from t)"),
    "single node": _run("select value from range(10)"),
    "subquery": _run("select count(*) from t where x > (select avg(x) from t)"),
    "function": _run("select sum(twice(x)) from t"),
    "half-read": _half_read,
    "forgotten": _forgotten,
    "failing": _failing,
    "misspelt": _misspelt,
    "memory table": _memory_table(_SMALL),
    "large memory table": _memory_table(_LARGE),
    "nested memory table": _memory_table(_LARGE, nested=True),
    "created table": _created_table,
    "cached": _cached,
    "written": _written,
}
FEEDS: dict[str, Kind] = {"feed": _run("select n, count(*) from fed group by n"), "new feed": _new_feed}


def write_table(place: Path) -> None:
    place.mkdir()
    for part in range(_FILES):
        rows = range(part * _ROWS, (part + 1) * _ROWS)
        columns = {"x": rows, "k": [x % 50 for x in rows], "s": [f"{x * 7919 % 1000003:050}" for x in rows]}
        pq.write_table(pa.table(columns), place / f"{part}.parquet")


def _twice() -> ScalarUDF:
    return udf(lambda values: pc.multiply(values, 2), [pa.int64()], pa.int64(), "immutable", "twice")
