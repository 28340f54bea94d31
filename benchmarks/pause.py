"""The first query after a pause, on a local Spark: with Spark's own Python daemon, and with that of sparkfusion.

    python -m benchmarks.pause               # three pauses of 80 seconds: about five minutes

Spark ends Python workers that are idle for a minute. Each daemon has a Spark in a process of its own. Both pause, and
then answer in turn. The query reads lineitem of TPC-H at scale 0.1. The best time of each kind counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import sparkfusion
from sparkfusion.bench.in_turn import time_answer
from sparkfusion.bench.tpc import TPCH

DAEMONS = ("pyspark.daemon", "sparkfusion.runner.spark.daemon")
QUERY = "select l_returnflag, count(*) as n from lineitem group by l_returnflag"
CONFIG: Mapping[str, object] = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.small_stage_bytes": 0}
_sessions: list[sparkfusion.Session] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pauses", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=80, help="of a pause")
    arguments = parser.parse_args()
    TPCH.prepare(0.1)
    spawn = get_context("spawn")
    sides = {daemon: ProcessPoolExecutor(1, spawn, connect, (daemon,)) for daemon in DAEMONS}
    warm = {daemon: min(side.submit(ask).result() for _ in range(10)) for daemon, side in sides.items()}
    cold: dict[str, list[float]] = {daemon: [] for daemon in DAEMONS}
    for _ in range(arguments.pauses):
        time.sleep(arguments.seconds)
        for daemon, side in sides.items():
            cold[daemon].append(side.submit(ask).result())
    for daemon, side in sides.items():
        print(f"{daemon:>32}: {min(cold[daemon]):.2f} s after a pause, {warm[daemon]:.2f} s otherwise")
        side.submit(close).result()
        side.shutdown()


def connect(daemon: str) -> None:
    from sparkfusion.runner.spark.launch import start_local

    session = sparkfusion.connect(start_local(settings={"spark.python.daemon.module": daemon}), config=CONFIG)
    TPCH.register(session, TPCH.prepare(0.1))
    _sessions.append(session)


def ask() -> float:
    return time_answer(_sessions[0].sql(QUERY).collect)[0]


def close() -> None:
    from pyspark.sql import SparkSession

    _sessions.pop().close()
    SparkSession.builder.getOrCreate().stop()


if __name__ == "__main__":
    main()
