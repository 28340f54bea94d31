"""Resident workers against Spark jobs, alternately in one run: a tiny query of two stages, and TPC-H.

    python -m benchmarks.resident --scale 0.1 --rounds 5

Both sessions run on the same local Spark, over the same files, and distribute every query (`bytes_per_partition` is set
low). The best time of each side counts. Answers are compared. The tiny query is measured twice: `driver`, where mode
`jobs` runs such small stages in the driver, and `tiny`, where every stage is a Spark job.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from sparkfusion.bench.in_turn import time_answer
from sparkfusion.bench.tpc import TPCH
from sparkfusion.config import MIB
from sparkfusion.runner.spark.launch import start_local
from sparkfusion.verify import compare_tables

MODES = ("jobs", "resident")
TINY = "select k, count(*) as n, sum(v) as s from tiny group by k order by k"
ENOUGH = 4
"""Slots of the local Spark: the long job holds one of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    spark = start_local(f"local[{ENOUGH},4]")
    with tempfile.TemporaryDirectory() as scratch:
        tiny = write_tiny(Path(scratch))
        sessions = []
        for mode in MODES:
            session = sparkfusion.connect(spark, config={"sparkfusion.spark_mode": mode})
            session.config["datafusion.execution.target_partitions"] = 2
            session.register_parquet("tiny", tiny)
            TPCH.register(session, TPCH.prepare(arguments.scale))
            sessions.append(session)
        print(f"{'query':>6} {'jobs':>8} {'resident':>8} {'ratio':>6}")
        for session in sessions:
            session.config["sparkfusion.bytes_per_partition"] = 1
        # the first query of each side starts its processes
        first = [time_answer(session.sql(TINY).collect)[0] for session in sessions]
        print(f"{'first':>6} {first[0]:>8.3f} {first[1]:>8.3f}", flush=True)
        show("driver", *compare(sessions, TINY, 4 * arguments.rounds))
        for session in sessions:
            session.config["sparkfusion.small_stage_bytes"] = 0
        show("tiny", *compare(sessions, TINY, 4 * arguments.rounds))
        for session in sessions:
            del session.config["sparkfusion.small_stage_bytes"]
            session.config["sparkfusion.bytes_per_partition"] = MIB
        totals = [0.0, 0.0]
        for number, text in TPCH.queries().items():
            jobs, resident = compare(sessions, text, arguments.rounds)
            show(f"q{number}", jobs, resident)
            totals = [totals[0] + jobs, totals[1] + resident]
        show("TPC-H", *totals)
        for session in sessions:
            session.close()
    spark.stop()


def write_tiny(directory: Path) -> Path:
    """A table in two files, of a thousand rows each."""
    home = directory / "tiny"
    home.mkdir()
    for part in range(2):
        values = range(part * 1000, (part + 1) * 1000)
        pq.write_table(pa.table({"k": [v % 7 for v in values], "v": list(values)}), home / f"{part}.parquet")
    return home


def compare(sessions: list[sparkfusion.Session], text: str, rounds: int) -> tuple[float, float]:
    """The best time of each mode, in turn; the first run of each is not counted."""
    best = [float("inf")] * len(MODES)
    for number in range(rounds + 1):
        answers = []
        for side, session in enumerate(sessions):
            seconds, answer = time_answer(session.sql(text).collect)
            answers.append(answer)
            best[side] = min(best[side], seconds) if number else best[side]
        if not compare_tables(*answers).equal:
            raise SystemExit(f"the answers differ: {text}")
    return best[0], best[1]


def show(name: str, jobs: float, resident: float) -> None:
    print(f"{name:>6} {jobs:>8.3f} {resident:>8.3f} {resident / jobs:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
