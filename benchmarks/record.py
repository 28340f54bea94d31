"""What benchmarks write down: their results, and the machine that they ran on."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparkfusion.bench.machine_facts import machine_facts as facts_of
from sparkfusion.config import available_cores

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("sparkfusion", "datafusion", "pyspark", "pyarrow", "duckdb", "polars")
_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


def write_json(name: str, result: Mapping[str, Any], directory: Path = RESULTS) -> Path:
    """Write a result under a name, and say where. An earlier one of that name is replaced."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {path}", flush=True)
    return path


def write_timings(name: str, scale: float, rounds: int, rows: list[dict[str, Any]], total: dict[str, float]) -> None:
    """What `make bench-spark` found out."""
    facts = {
        "cores": available_cores(),
        "python": platform.python_version(),
        "datafusion": version("datafusion"),
    }
    write_json(name, {"scale": scale, "rounds": rounds, **facts, "queries": rows, "total": total})


def machine_facts() -> dict[str, Any]:
    """What a reader has to know of the machine and the software to repeat a run."""
    return {**facts_of(_PACKAGES), "processor": _processor(), "commit": _commit()}


def _processor() -> str:
    try:
        found = _MODEL.search(Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def _commit() -> str:
    """The commit that is checked out, with a mark if files differ from it. Empty without a git repository."""
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty", "--abbrev=10", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
