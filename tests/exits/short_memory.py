"""Does DataFusion still hang when partitions exchange rows and memory is short (DF 24883)? To be run by hand.

`python -m tests.exits.short_memory` repeats a query of half a second until one never ends. It depends on chance: on a
busy machine all attempts may end, so no test rests on it. Run it when DataFusion is upgraded, on a quiet machine.
"""

from __future__ import annotations

import argparse
import faulthandler
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

_PATIENCE = 10
_OPTIONS = {"datafusion.execution.target_partitions": "2", "datafusion.execution.batch_size": "256"}
_MEMORY = 8 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=200)
    attempts = parser.parse_args().attempts
    with tempfile.TemporaryDirectory() as directory:
        _write_table(Path(directory))
        for attempt in range(1, attempts + 1):
            print(f"attempt {attempt}: if this is the last line, it hangs", flush=True)
            faulthandler.dump_traceback_later(_PATIENCE, exit=True)
            _ask(directory)
        faulthandler.cancel_dump_traceback_later()
    print(
        f"none of {attempts} attempts hangs: perhaps the guards in session/single_node.py and session/planner.py can go"
    )


def _write_table(directory: Path) -> None:
    for file in range(4):
        rows = range(file * 20_000, (file + 1) * 20_000)
        table = pa.table({"v": rows, "s": [f"{row * 7919 % 1_000_003:050}" for row in rows]})
        pq.write_table(table, directory / f"{file}.parquet")


def _ask(directory: str) -> None:
    runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(_MEMORY)
    context = SessionContext(SessionConfig(_OPTIONS), runtime)
    context.register_parquet("t", directory)
    for _ in context.sql("select v, s, count(*) from t group by v, s").execute_stream():
        pass


if __name__ == "__main__":
    main()
