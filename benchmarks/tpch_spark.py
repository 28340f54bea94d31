"""TPC-H on Spark: sparkfusion against Spark SQL in the same session, over the same files, and single-node DataFusion.

    make bench-spark                                            # scale 1
    make bench-spark SCALE=10
    python -m benchmarks.tpch_spark --scale 0.1 --queries 1,3,6

sparkfusion runs twice: with frames in files of this machine, and with frames in Spark's own shuffle. Each query runs on
every side in turn, `--rounds` times; the best time of each side counts. Before that a round is not counted: of the same
query, or with `--warm-up first` of the first three queries only. Answers are compared. Results go to
`benchmarks/results/tpch_spark.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

import sparkfusion
from benchmarks.record import write_timings
from benchmarks.spark_start import start_spark
from sparkfusion.bench.in_turn import time_answer
from sparkfusion.bench.referee import is_close
from sparkfusion.bench.tpc import TPCH

SPARK_SQL, FILES, SHUFFLE, SINGLE_NODE = "spark_sql", "sparkfusion_files", "sparkfusion_shuffle", "single_node"
STORES = {FILES: "local", SHUFFLE: "spark"}
TITLES = {SPARK_SQL: "Spark SQL", FILES: "files", SHUFFLE: "Spark shuffle", SINGLE_NODE: "single node"}
FIRST = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--queries", default="", help="numbers, separated by commas; all if not given")
    parser.add_argument("--warm-up", choices=("each", "first"), default="each", help="which queries run once uncounted")
    arguments = parser.parse_args()
    directory = TPCH.prepare(arguments.scale)
    with ExitStack() as stack:
        spark = start_spark()
        stack.callback(spark.stop)
        sessions = {}
        for side, store in STORES.items():
            sessions[side] = stack.enter_context(sparkfusion.connect(spark, config={"sparkfusion.store": store}))
            TPCH.register(sessions[side], directory)
        for table in TPCH.tables(directory):
            spark.read.parquet(str(directory / table)).createOrReplaceTempView(table)
        titles = " ".join(f"{title:>13}" for title in TITLES.values())
        print(f"{'query':>5} {titles} {'faster: files':>13} shuffle")
        rows = []
        for place, (number, text) in enumerate(TPCH.choose(arguments.queries)):
            sides = sides_of(sessions, spark, text)
            if arguments.warm_up == "each" or place < FIRST:
                for action in sides.values():
                    action()
            rows.append(measure(sides, number, arguments.rounds))
    total = with_ratios({side: sum(row[side] for row in rows) for side in TITLES})
    show("total", total)
    print(f"files against single-node DataFusion: {total[FILES] / total[SINGLE_NODE]:.2f} times its time")
    write_timings("tpch_spark", arguments.scale, arguments.rounds, rows, total)


Sides = dict[str, Callable[[], pa.Table]]


def sides_of(sessions: dict[str, sparkfusion.Session], spark: Any, text: str) -> Sides:
    return {
        SPARK_SQL: lambda: spark.sql(text).toArrow(),
        **{side: session.sql(text).collect for side, session in sessions.items()},
        SINGLE_NODE: sessions[FILES].sql(text).to_datafusion().to_arrow_table,
    }


def measure(sides: Sides, number: int, rounds: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {side: [] for side in sides}
    answers: dict[str, pa.Table] = {}
    for _ in range(rounds):
        for side, action in sides.items():
            seconds, answer = time_answer(action)
            times[side].append(seconds)
            answers[side] = answer
    row = with_ratios({side: min(seconds) for side, seconds in times.items()})
    row |= {"query": number, "equal": all(is_close(answers[SINGLE_NODE], answer) for answer in answers.values())}
    show(f"q{number}", row)
    return row


def with_ratios(seconds: dict[str, float]) -> dict[str, Any]:
    return seconds | {f"faster_{side}": seconds[SPARK_SQL] / seconds[side] for side in STORES}


def show(name: str, row: dict[str, Any]) -> None:
    mark = "" if row.get("equal", True) else "  ANSWERS DIFFER"
    columns = " ".join(f"{row[side]:>13.3f}" for side in TITLES)
    print(f"{name:>5} {columns} {row[f'faster_{FILES}']:>13.2f} {row[f'faster_{SHUFFLE}']:>7.2f}{mark}", flush=True)


if __name__ == "__main__":
    main()
