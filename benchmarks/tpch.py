"""TPC-H, distributed in this process against single-node DataFusion, alternately in one run.

    make bench                                    # scale 1, all queries
    python -m benchmarks.tpch --scale 0.1 --queries 1,3,6 --rounds 5
    python -m benchmarks.tpch --tasks 1           # one task runs a whole plan

Both sides run with their default settings over the same files. Each query runs `--rounds` times on both sides in
turn and the best time of each counts. Answers are compared. Results go to `benchmarks/results/tpch.json`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import sparkfusion
from benchmarks.record import write_timings
from benchmarks.tpc import TPCH
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.stage import StageGraph
from sparkfusion.session.dataframe import look_inside
from sparkfusion.verify import compare_tables


def main() -> None:
    arguments = parse_arguments()
    directory = TPCH.prepare(arguments.scale)
    print(
        f"{'query':>5} {'single node':>11} {'distributed':>11} {'ratio':>6} {'stages':>6} {'tasks':>5} "
        f"{'cut+isolate ms':>14}"
    )
    with sparkfusion.connect(config={"sparkfusion.tasks": arguments.tasks}) as session:
        TPCH.register(session, directory)
        rows = [measure(session, number, text, arguments.rounds) for number, text in TPCH.choose(arguments.queries)]
    total = summary(rows)
    print(f"{'total':>5} {total['single_node']:>11.3f} {total['distributed']:>11.3f} {total['ratio']:>6.2f}")
    write_timings("tpch", arguments.scale, arguments.rounds, rows, total)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=0, help="sparkfusion.tasks; 0 and 1: one task runs a whole plan")
    parser.add_argument("--queries", default="", help="numbers, separated by commas; all if not given")
    return parser.parse_args()


def measure(session: sparkfusion.Session, number: int, text: str, rounds: int) -> dict[str, Any]:
    """One query on both sides, in turn; prints its row."""
    frame = session.sql(text)
    single, distributed = [], []
    for _ in range(rounds):
        seconds, expected = timed(frame.to_datafusion().to_arrow_table)
        single.append(seconds)
        seconds, answer = timed(frame.collect)
        distributed.append(seconds)
    engine, query = look_inside(frame)
    planned = engine.plan(query)
    graph = planned.distribution.graph
    equal = compare_tables(expected, answer).equal
    row = {
        "query": number,
        "single_node": min(single),
        "distributed": min(distributed),
        "ratio": min(distributed) / min(single),
        "stages": len(graph.stages) if graph else 0,
        "tasks": graph.task_count if graph else 0,
        "planning_ms": planned.seconds * 1e3,
        "cut_ms": planned.cut_seconds * 1e3,
        "isolate_ms": isolate_seconds(graph) * 1e3,
        "equal": equal,
    }
    mark = "" if equal else "  ANSWERS DIFFER"
    print(
        f"{'q' + str(number):>5} {row['single_node']:>11.3f} {row['distributed']:>11.3f} {row['ratio']:>6.2f} "
        f"{row['stages']:>6} {row['tasks']:>5} {row['cut_ms'] + row['isolate_ms']:>14.1f}{mark}",
        flush=True,
    )
    return row


def isolate_seconds(graph: StageGraph | None) -> float:
    """How long it takes to make the plans of all tasks."""
    started = time.perf_counter()
    for stage in graph.stages if graph is not None else ():
        for task in range(stage.task_count):
            isolate(stage, (task,))
    return time.perf_counter() - started


def timed(action: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    single = sum(row["single_node"] for row in rows)
    distributed = sum(row["distributed"] for row in rows)
    return {"single_node": single, "distributed": distributed, "ratio": distributed / single}


if __name__ == "__main__":
    main()
