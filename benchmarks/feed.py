"""A table whose files are found page by page: fed while they are found, against listing first and planning then.

    make bench-feed
    python -m benchmarks.feed --units 2000 --page-seconds 0.1

A listing of `--units` files comes in pages, each after `--page-seconds`. Every side runs the same aggregation over the
same files, in turn, `--rounds` times; the best time counts, answers are compared. The listing and the reading alone are
measured too: a fed query can take no less than the longer of them. Results go to `benchmarks/results/feed.json`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from benchmarks.record import write_json
from benchmarks.spark_start import start_spark

SQL = "select k, count(*) as n, sum(v) as total, max(s) as s from events group by k order by k"
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
FED, FED_SPARK = "fed, in process", "fed, on Spark"
THEN, THEN_SPARK, SPARK_SQL = "list then plan, in process", "list then plan, on Spark", "list then plan, Spark SQL"
LISTING, READING, READING_SPARK = "listing alone", "reading alone, in process", "reading alone, on Spark"
DISTINCT = 100


class Pages(sparkfusion.WorkUnitFeedProvider):
    """A listing that answers page by page, slowly."""

    def __init__(self, paths: list[str], page: int, seconds: float) -> None:
        self._paths = paths
        self._page = page
        self._seconds = seconds
        self._sizes = {path: Path(path).stat().st_size for path in paths}  # a listing tells them

    def pages(self, wait: Callable[[float], object]) -> Iterator[list[str]]:
        for start in range(0, len(self._paths), self._page):
            wait(self._seconds)
            yield self._paths[start : start + self._page]

    def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Iterator[sparkfusion.FileUnit]:
        for page in self.pages(context.wait):
            for path in page:
                yield sparkfusion.FileUnit(path, self._sizes[path])

    def all_paths(self) -> list[str]:
        return [path for page in self.pages(time.sleep) for path in page]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--page", type=int, default=500, help="files in a page")
    parser.add_argument("--page-seconds", type=float, default=0.25)
    parser.add_argument("--rows", type=int, default=1000, help="rows of a file")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkfusion-bench-")))
        paths = write_files(directory, arguments.units, arguments.rows)
        pages = Pages(paths, arguments.page, arguments.page_seconds)
        spark = start_spark()
        stack.callback(spark.stop)
        here, on_spark = stack.enter_context(sparkfusion.connect()), stack.enter_context(sparkfusion.connect(spark))
        times = measure(sides_of(here, on_spark, spark, pages, directory), arguments.rounds)
    report(times, arguments)


def write_files(directory: Path, units: int, rows: int) -> list[str]:
    """So many files; every hundredth is the same one under another name, which no reader notices."""
    paths: list[str] = []
    for unit in range(units):
        path = directory / f"{unit:06d}.parquet"
        if unit < DISTINCT:
            values = range(unit * rows, (unit + 1) * rows)
            columns = [[v % 97 for v in values], list(values), [f"name {v % 1000}" for v in values]]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), path)
        else:
            os.link(paths[unit % DISTINCT], path)
        paths.append(str(path))
    return paths


Sides = dict[str, Callable[[], Any]]


def sides_of(
    here: sparkfusion.Session, on_spark: sparkfusion.Session, spark: Any, pages: Pages, directory: Path
) -> Sides:
    for session in (here, on_spark):
        session.register_feed("events", pages, schema=SCHEMA, format="parquet")

    def listed(session: sparkfusion.Session) -> pa.Table:
        pages.all_paths()
        return read(session)

    def read(session: sparkfusion.Session) -> pa.Table:
        session.register_parquet("listed", str(directory), schema=SCHEMA)
        try:
            return session.sql(SQL.replace("events", "listed")).collect()
        finally:
            session.deregister_table("listed")

    def spark_sql() -> pa.Table:
        spark.read.schema("k long, v long, s string").parquet(*pages.all_paths()).createOrReplaceTempView("events")
        return spark.sql(SQL).toArrow()

    return {
        LISTING: lambda: pages.all_paths() and None,
        READING: lambda: read(here),
        READING_SPARK: lambda: read(on_spark),
        FED: lambda: here.sql(SQL).collect(),
        THEN: lambda: listed(here),
        FED_SPARK: lambda: on_spark.sql(SQL).collect(),
        THEN_SPARK: lambda: listed(on_spark),
        SPARK_SQL: spark_sql,
    }


def measure(sides: Sides, rounds: int) -> dict[str, float]:
    """The best time of each side, all of them in turn. Every answer is the same."""
    best: dict[str, float] = {}
    expected: list[dict[str, Any]] | None = None
    for _ in range(rounds):
        for side, action in sides.items():
            started = time.perf_counter()
            answer = action()
            seconds = time.perf_counter() - started
            best[side] = min(best.get(side, seconds), seconds)
            if answer is not None:
                rows = answer.to_pylist()
                expected = expected or rows
                if rows != expected:
                    raise SystemExit(f"{side} gave another answer")
            print(f"{side:>28} {seconds:8.2f} s", flush=True)
    return best


def report(times: dict[str, float], arguments: argparse.Namespace) -> None:
    ratios = {
        "fed in process / max(listing, reading)": times[FED] / max(times[LISTING], times[READING]),
        "list then plan in process / fed": times[THEN] / times[FED],
        "fed on Spark / max(listing, reading on Spark)": times[FED_SPARK] / max(times[LISTING], times[READING_SPARK]),
        "list then plan on Spark / fed on Spark": times[THEN_SPARK] / times[FED_SPARK],
        "Spark SQL, list then plan / fed on Spark": times[SPARK_SQL] / times[FED_SPARK],
    }
    print()
    for name, ratio in ratios.items():
        print(f"{name:>46} {ratio:6.2f}")
    write_json("feed", {"arguments": vars(arguments), "seconds": times, "ratios": ratios})


if __name__ == "__main__":
    main()
