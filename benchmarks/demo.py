"""A short tour: small TPC-H data, a few queries in this process and on a local Spark, their answers, stages, timing.

make demo
"""

from __future__ import annotations

import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sparkfusion
from sparkfusion.bench.tpc import TPCH
from sparkfusion.verify import compare_tables

SCALE = 0.1
QUERIES = (1, 3, 5)
ROUNDS = 3
NOISE = 0.1  # a smaller part of the time is no difference
SETTINGS = {
    "sparkfusion.bytes_per_partition": "1MiB",  # the data is small: make it worth several tasks
    "datafusion.execution.target_partitions": 4,
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sparkfusion-demo-") as directory:
        print(f"Generating TPC-H at scale {SCALE} …")
        TPCH.generate(Path(directory), SCALE)
        with sparkfusion.connect(config=SETTINGS) as session:
            TPCH.register(session, directory)
            for number in QUERIES:
                show_query(session, number)
            show_streaming(session)
            show_feed(session, Path(directory) / "orders")
        show_spark(directory)
    print("\nNext: “First five minutes” in README.md, or .venv/bin/sparkfusion for a shell")


def show_query(session: sparkfusion.Session, number: int) -> None:
    frame = session.sql(TPCH.queries()[number])
    print(f"\n━━ TPC-H query {number} ━━\n")
    frame.show(5)
    print()
    print(compact(frame.explain_text(analyze=True)))
    single = fastest(lambda: frame.to_datafusion().to_arrow_table())
    distributed = fastest(frame.collect)
    same = compare_tables(frame.to_datafusion().to_arrow_table(), frame.collect()).equal
    print(f"\nsingle node {single * 1e3:.0f} ms, distributed {distributed * 1e3:.0f} ms, same answer: {same}")
    print(f"({verdict(single, distributed)})")


def show_streaming(session: sparkfusion.Session) -> None:
    print("\n━━ rows as they come ━━\n")
    started = time.perf_counter()
    with session.sql("select l_orderkey, l_comment from lineitem where l_quantity > 10").stream() as rows:
        first = next(rows)
        print(f"first {first.num_rows:,} rows after {(time.perf_counter() - started) * 1e3:.0f} ms")
        rest = sum(batch.num_rows for batch in rows)
    print(f"all {first.num_rows + rest:,} rows after {(time.perf_counter() - started) * 1e3:.0f} ms")


class SlowListing(sparkfusion.WorkUnitFeedProvider):
    """Files that are found one after the other, with a wait before each."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.ended = 0.0

    def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Iterator[sparkfusion.FileUnit]:
        for path in sorted(self._directory.iterdir()):
            context.wait(0.3)
            yield sparkfusion.FileUnit(str(path), path.stat().st_size)
        self.ended = time.perf_counter()


def show_feed(session: sparkfusion.Session, directory: Path) -> None:
    print("\n━━ a table whose files are found while the query runs ━━\n")
    listing = SlowListing(directory)
    session.register_feed("found", listing, schema=session.table("orders").schema(), format="parquet")
    started = time.perf_counter()
    with session.sql("select o_orderkey from found where o_totalprice > 100000").stream() as rows:
        next(rows)
        print(f"first rows after {(time.perf_counter() - started) * 1e3:.0f} ms", flush=True)
        for _ in rows:
            pass
    print(f"the listing ended after {(listing.ended - started) * 1e3:.0f} ms")
    print(session.sql("select count(*) from found").explain_text(analyze=True).splitlines()[-1])


def show_spark(directory: str) -> None:
    """The same queries as tasks of Spark, then from Spark's DataFrames and back to them."""
    print("\n━━ the same on Spark, in local mode ━━\n\nstarting Spark …", flush=True)
    with sparkfusion.connect() as here, sparkfusion.connect("spark", config=SETTINGS) as session:
        TPCH.register(here, directory)
        TPCH.register(session, directory)
        print(session.sql(TPCH.queries()[1]).explain_text().splitlines()[0])
        for number in QUERIES:
            frame = session.sql(TPCH.queries()[number])
            frame.collect()  # Spark's Python workers start with the first task
            same = compare_tables(here.sql(TPCH.queries()[number]).collect(), frame.collect()).equal
            print(f"query {number}: {seconds(frame.collect) * 1e3:.0f} ms, same answer as in this process: {same}")
        show_data_frames(session)


def show_data_frames(session: sparkfusion.Session) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    events = spark.range(0, 1_000_000, 1, 4).selectExpr("id", "id % 25 as nation", "id % 100 as amount")
    session.register_spark("events", events)
    answer = session.sql(
        "select n_name, count(*) as events, sum(amount) as amount from events join nation on nation = n_nationkey "
        "group by n_name"
    ).to_spark()
    print("\na Spark DataFrame in, a Spark DataFrame out:\n")
    answer.orderBy("n_name").show(3)


def compact(text: str, width: int = 118) -> str:
    """Long operator lines cut in the middle, so that the tree fits a terminal and keeps its numbers; the title of a
    stage is kept whole, with its numbers on a line of their own.
    """
    return "\n".join(part for line in text.splitlines() for part in _fitted(line, width))


def _fitted(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    if not line.startswith("┌"):
        return [_cut(line, width)]
    title, _, numbers = line.rpartition(" ── ")
    return [
        *textwrap.wrap(title, width, subsequent_indent="│ "),
        *textwrap.wrap(numbers, width, initial_indent="│ ", subsequent_indent="│ "),
    ]


def _cut(line: str, width: int) -> str:
    start, bracket, numbers = line.rpartition("  (")
    kept = f"…  ({numbers}" if bracket else "…"
    return (start or line)[: width - len(kept)] + kept


def verdict(single: float, distributed: float) -> str:
    """What the two times say about distribution in one process.

    >>> verdict(0.1, 0.15)
    'distributed, the query took 1.5 times as long: for so little data on one machine, tasks cost more than they gain'
    """
    ratio = distributed / single
    if ratio > 1 + NOISE:
        return (
            f"distributed, the query took {ratio:.1f} times as long: for so little data on one machine, tasks "
            "cost more than they gain"
        )
    if ratio < 1 - NOISE:
        return f"distributed, the query took {ratio:.1f} times as long"
    return "both took about the same time"


def fastest(action: Callable[[], object]) -> float:
    return min(seconds(action) for _ in range(ROUNDS))


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
