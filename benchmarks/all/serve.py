"""The process of some engines: `python -m benchmarks.all.serve <process> <data> <home>` answers queries, a line each.

Reads requests `{"engine": …, "sql": …}` as lines of JSON and answers each with one line. Rows go to a file below its
home, after the time is taken. It ends when its input ends. If it is in the middle of a query then, for instance because
the benchmark was killed, it ends with everything that it started after a few seconds.

Sail's process runs this module too, in an environment without sparkfusion: imports here are few.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from benchmarks.all.backends.base import Ask, Backend
from benchmarks.line_server import keep_stdout, read_requests

BACKENDS = {
    "datafusion": "alone:open_datafusion",
    "duckdb": "alone:open_duckdb",
    "polars": "alone:open_polars",
    "local": "ours:open_local",
    "two-tasks": "ours:open_two_tasks",
    "flight": "ours:open_flight",
    "spark": "on_spark:open_spark",
    "executors": "on_spark:open_executors",
    "sail": "sail:open_sail",
    "sail-cluster": "sail:open_sail_cluster",
}
VERSIONS = ("pysail", "pyspark-client")
"""Packages that only this process has."""

GRACE = 20.0
"""Seconds for a query to end when nobody waits for its answer any more."""


def main(process: str, data: Path, home: Path) -> None:
    answers = keep_stdout()
    requests = read_requests(GRACE, _end_everything)
    tables = {path.name: path.resolve() for path in sorted(data.iterdir()) if path.is_dir()}
    warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
    with _backend(process)(tables, home) as engines:
        _say(answers, {"ready": sorted(engines), "versions": _versions()})
        while (line := requests.get()) is not None:
            _say(answers, _answer(engines, json.loads(line), home / "answer.arrow"))


def _backend(process: str) -> Backend:
    module, _, name = BACKENDS[process].partition(":")
    found: Backend = getattr(import_module(f"benchmarks.all.backends.{module}"), name)
    return found


def _answer(engines: Mapping[str, Ask], request: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Run one query. Whatever it raises is an answer too: the next query may still work."""
    started = time.perf_counter()
    try:
        reply = engines[request["engine"]](request["sql"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - started
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, reply.table.schema) as writer:
        writer.write_table(reply.table)
    return {"seconds": seconds, "rows": reply.table.num_rows, "shuffled_bytes": reply.shuffled_bytes}


def _versions() -> dict[str, str]:
    found = {}
    for package in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def _say(answers: TextIO, message: Mapping[str, Any]) -> None:
    print(json.dumps(message), file=answers, flush=True)


def _end_everything() -> None:
    """The group is ours: `EngineProcess` starts us as its leader."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
