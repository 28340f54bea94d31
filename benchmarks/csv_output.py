"""What `sparkfusion sql -o result.csv` costs, against COPY of the same rows to CSV, in seconds of CPU.

    python -m benchmarks.csv_output                   # lineitem at scale 1
    python -m benchmarks.csv_output --scale 0.1 --rounds 5

Both run in this process, in turn, over the same file; the best round of each counts. CPU time is less disturbed by what
else the machine does than time. The files hold the same rows, but not the same bytes: COPY quotes less.
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
        best = dict.fromkeys(sides, float("inf"))
        for _ in range(arguments.rounds):
            for name, action in sides.items():
                best[name] = min(best[name], cpu_seconds(action))
    for name, seconds in best.items():
        print(f"{name:>8} {seconds:8.2f} s of CPU")
    print(f"{'ratio':>8} {best['sql -o'] / best['COPY']:8.2f}")


def copy(session: sparkfusion.Session, query: str, path: Path) -> None:
    session.sql(f"copy ({query}) to '{path}' stored as csv options ('format.has_header' 'true')")
    path.unlink()


def write_result(session: sparkfusion.Session, query: str, path: Path) -> None:
    """As the command line does it."""
    with destination(str(path)) as out, session.sql(query).stream() as batches:
        write(batches.schema, batches, out, "csv")
    path.unlink()


def cpu_seconds(action: Callable[[], None]) -> float:
    """Of all threads of this process."""
    started = time.process_time()
    action()
    return time.process_time() - started


if __name__ == "__main__":
    main()
