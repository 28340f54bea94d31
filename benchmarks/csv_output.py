"""What `sparkfusion sql -o result.csv` costs, against COPY of the same rows to CSV, in seconds and in seconds of CPU.

    python -m benchmarks.csv_output                   # lineitem at scale 1
    python -m benchmarks.csv_output --scale 0.1 --rounds 5

Both run in this process, in turn, over the same file; the best round of each counts. What else the machine does
disturbs the time more than the CPU time. The files hold the same rows, but not the same bytes: COPY quotes less.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sparkfusion
from sparkfusion.bench.tpc import TPCH
from sparkfusion.cli.output import destination, write

QUERY = "select * from lineitem"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--query", default=QUERY)
    arguments = parser.parse_args()
    directory = TPCH.prepare(arguments.scale)
    with tempfile.TemporaryDirectory(prefix="csv-output-") as made, sparkfusion.connect() as session:
        TPCH.register(session, directory)
        sides: dict[str, Callable[[], None]] = {
            "COPY": lambda: copy(session, arguments.query, Path(made) / "copy.csv"),
            "sql -o": lambda: write_result(session, arguments.query, Path(made) / "result.csv"),
        }
        rounds = [{name: cost(action) for name, action in sides.items()} for _ in range(arguments.rounds)]
    best = {name: [min(each[name][kind] for each in rounds) for kind in (0, 1)] for name in sides}
    for name, (seconds, cpu) in best.items():
        print(f"{name:>8} {seconds:8.2f} s {cpu:8.2f} s of CPU")
    ratios = [ours / copys for ours, copys in zip(best["sql -o"], best["COPY"], strict=True)]
    print(f"{'ratio':>8} {ratios[0]:8.2f}   {ratios[1]:8.2f}")


def copy(session: sparkfusion.Session, query: str, path: Path) -> None:
    session.sql(f"copy ({query}) to '{path}' stored as csv options ('format.has_header' 'true')")
    path.unlink()


def write_result(session: sparkfusion.Session, query: str, path: Path) -> None:
    """As the command line does it."""
    with destination(str(path)) as out, session.sql(query).stream() as batches:
        write(batches.schema, batches, out, "csv")
    path.unlink()


def cost(action: Callable[[], None]) -> tuple[float, float]:
    """Seconds, and seconds of CPU of all threads of this process."""
    started, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    main()
