"""TPC-H on Spark: sparkfusion's tasks against Spark SQL in the same session, alternately, over the same files.

    make bench-spark
    python -m benchmarks.tpch_spark --scale 0.1 --queries 1,3,6

Each query runs `--rounds` times on every side in turn, after a round that is not counted; the best time counts.
Answers are compared. Results go to `benchmarks/results/tpch_spark.json`.
"""

from __future__ import annotations

import argparse
from decimal import Decimal
from typing import Any

import pyarrow as pa

import sparkfusion
from benchmarks.tpc import TPCH
from benchmarks.tpch import chosen_queries, data_directory, timed, write_json

SIDES = ("spark_sql", "sparkfusion", "single_node")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--queries", default="", help="numbers, separated by commas; all if not given")
    arguments = parser.parse_args()
    directory = data_directory(arguments.scale)
    with sparkfusion.connect("spark") as session:
        spark = active_spark()
        TPCH.register(session, directory)
        for table in TPCH.tables(directory):
            spark.read.parquet(str(directory / table)).createOrReplaceTempView(table)
        print(f"{'query':>5} {'Spark SQL':>10} {'sparkfusion':>11} {'single node':>11} {'faster':>7}")
        rows = [measure(session, spark, *query, arguments.rounds) for query in chosen_queries(arguments.queries)]
    total = {side: sum(row[side] for row in rows) for side in SIDES}
    total["faster"] = total["spark_sql"] / total["sparkfusion"]
    show("total", total)
    write_json("tpch_spark", arguments.scale, arguments.rounds, rows, total)


def active_spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def measure(session: sparkfusion.Session, spark: Any, number: int, text: str, rounds: int) -> dict[str, Any]:
    frame = session.sql(text)
    actions = {
        "spark_sql": lambda: spark.sql(text).toArrow(),
        "sparkfusion": frame.collect,
        "single_node": frame.to_datafusion().to_arrow_table,
    }
    answers = {side: action() for side, action in actions.items()}
    best = {side: min(timed(action)[0] for _ in range(rounds)) for side, action in actions.items()}
    row = {
        "query": number,
        **best,
        "faster": best["spark_sql"] / best["sparkfusion"],
        "equal": comparable(answers["spark_sql"]) == comparable(answers["sparkfusion"]),
    }
    show(f"q{number}", row)
    return row


def comparable(table: pa.Table) -> list[tuple[str, ...]]:
    """Rows whose text does not depend on how wide an engine makes its decimals."""
    return sorted(tuple(_plain(value) for value in row.values()) for row in table.to_pylist())


def _plain(value: object) -> str:
    return f"{float(value):.4g}" if isinstance(value, float | Decimal) else str(value)


def show(name: str, row: dict[str, Any]) -> None:
    mark = "" if row.get("equal", True) else "  ANSWERS DIFFER"
    print(
        f"{name:>5} {row['spark_sql']:>10.3f} {row['sparkfusion']:>11.3f} {row['single_node']:>11.3f} "
        f"{row['faster']:>7.2f}{mark}",
        flush=True,
    )


if __name__ == "__main__":
    main()
