"""The figures of docs/tuning.md: the same answer in two ways, in turns in one run, in process.

    python -m benchmarks.tuning --rows 2000000 --rounds 5

The best time of each way counts. Answers are compared.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datafusion import udf

import sparkfusion
from sparkfusion.bench.in_turn import time_answer
from sparkfusion.verify import compare_tables

DAYS = 30
SMALL_FILES = 1_000
LARGE_FILES = 4
Way = Callable[[sparkfusion.Session], pa.Table]


@dataclass(frozen=True)
class Advice:
    """One advice of the page: how it was done before, and how after."""

    name: str
    before: Way
    after: Way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| advice | before | after | after / before |\n|---|---|---|---|")
    with prepared_session(arguments.rows) as session:
        for advice in ADVICE:
            before, after = measure(session, advice, arguments.rounds)
            print(f"| {advice.name} | {before:.3f} s | {after:.3f} s | {after / before:.2f} |", flush=True)


@contextmanager
def prepared_session(rows: int) -> Iterator[sparkfusion.Session]:
    """A session in process, over tables with this many rows."""
    with tempfile.TemporaryDirectory() as scratch, sparkfusion.connect("local") as session:
        write_tables(Path(scratch), rows)
        for name in ("many", "few", "days"):
            session.register_parquet(name, str(Path(scratch) / name))
        session.register_udf(udf(row_by_row, [pa.float64()], pa.float64(), "immutable", "row_by_row"))
        session.register_udf(udf(array_by_array, [pa.float64()], pa.float64(), "immutable", "array_by_array"))
        yield session


def measure(session: sparkfusion.Session, advice: Advice, rounds: int) -> tuple[float, float]:
    """The best seconds of both ways. Raises if their answers differ."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        answers = []
        for position, way in enumerate((advice.before, advice.after)):
            seconds, answer = time_answer(partial(way, session))
            best[position] = min(best[position], seconds)
            answers.append(answer)
        if not compare_tables(*answers).equal:
            raise AssertionError(f"{advice.name}: the answers differ")
    return best[0], best[1]


def write_tables(home: Path, rows: int) -> None:
    """The same rows three times: in many files, in few files, and in directories of days."""
    random = np.random.default_rng(7)
    table = pa.table(
        {
            "id": np.arange(rows),
            "customer": random.integers(0, max(rows // 20, 1), rows),
            "day": random.integers(0, DAYS, rows),
            "price": random.random(rows),
            "note": pa.array(random.integers(0, 10**9, rows)).cast(pa.string()),
        }
    )
    for name, files in (("many", SMALL_FILES), ("few", LARGE_FILES)):
        (home / name).mkdir()
        step = -(-rows // files)
        for number in range(files):
            pq.write_table(table.slice(number * step, step), home / name / f"{number}.parquet")
    for day in range(DAYS):
        directory = home / "days" / f"day={day}"
        directory.mkdir(parents=True)
        pq.write_table(table.filter(pc.field("day") == day).drop_columns(["day"]), directory / "0.parquet")


def row_by_row(values: pa.Array) -> pa.Array:
    return pa.array([value * 2 + 1 for value in values.to_pylist()], pa.float64())


def array_by_array(values: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(values, 2.0), 1.0)


def query(text: str, **settings: object) -> Way:
    """Run a query with some settings, which are named without their prefix."""

    def run(session: sparkfusion.Session) -> pa.Table:
        for name, value in settings.items():
            session.config[f"sparkfusion.{name}"] = value
        try:
            return session.sql(text).collect()
        finally:
            for name in settings:
                session.sql(f"reset sparkfusion.{name}")

    return run


def ask_three_times(*, cached: bool) -> Way:
    def run(session: sparkfusion.Session) -> pa.Table:
        totals = session.sql("select customer, sum(price) as total from few group by customer")
        totals = totals.cache() if cached else totals
        return pa.concat_tables([totals.filter(f"total > {least}").collect() for least in (9, 10, 11)])

    return run


def first_rows(session: sparkfusion.Session) -> pa.Table:
    return session.sql("select id, note from few order by id").collect().slice(0, 10)


TOTALS = "select customer, count(*) as n, sum(price) as total from {} group by customer"
WIDE = "select count(*) as n from (select id, note, sum(price) as total from few group by id, note)"
ADVICE = (
    Advice("larger files", query(TOTALS.format("many")), query(TOTALS.format("few"))),
    Advice(
        "a directory for each day",
        query("select sum(price) as total from few where day = 3"),
        query("select sum(price) as total from days where day = 3"),
    ),
    Advice("`LIMIT` in the query", first_rows, query("select id, note from few order by id limit 10")),
    Advice("`cache()` for rows that several queries read", ask_three_times(cached=False), ask_three_times(cached=True)),
    Advice(
        "Python functions over whole arrays",
        query("select sum(row_by_row(price)) as total from few"),
        query("select sum(array_by_array(price)) as total from few"),
    ),
    Advice("one task for the whole plan on one machine", query(WIDE, task_cores=1), query(WIDE)),
    Advice(
        "no tasks for small queries",
        query("select count(*) as n from days where day = 3 and price < 0.5", bytes_per_partition=1, task_cores=1),
        query("select count(*) as n from days where day = 3 and price < 0.5"),
    ),
)

if __name__ == "__main__":
    main()
