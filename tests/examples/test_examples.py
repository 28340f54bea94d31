"""Every example runs, prints what it is about, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
PATIENCE = 250.0

SHOWN: dict[str, tuple[list[str], list[str]]] = {
    "custom_transport": ([], [r"\| 2 \| 3 \|", r"calls: .*'run': [1-9]"]),
    "dashboard": (["3"], ["update 3: ", r"the feed was closed\n$"]),
    "first_query": ([], [r"\| Oslo  \| 133334 \|", "distributed: ", "most expensive city: Oslo"]),
    "iceberg": ([], [r"Kyoto \| 1 ", r"\| Lima \| 1 \|"]),
    "listing": (["3000"], [r"first [\d,]+ rows after listing [\d,]+ of 3,000 objects", r"\| 9000 \| 18000.0 \|"]),
    "paginated_api": ([], [r"\| JP      \| 320 \| 11760.0 \|", r"first orders: \[\{'id': \d+\}"]),
    "python_function": ([], [r"\| PERSON 0! \| 800 \|"]),
    "spark_dataframes": ([], [r"\| 1000\|142858\|", "schema: struct<user:bigint,n:bigint>"]),
    "test_my_queries": ([], []),
}
"""The arguments of each program, and what it prints."""
PROGRAM_NAMES = [name for name in SHOWN if name != "test_my_queries"]
FIRST = ("first_query", "listing", "dashboard")


def run(*command: str, cwd: Path) -> str:
    temporary = cwd / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=cwd, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [path.name for path in cwd.iterdir()] == ["tmp"]
    return ended.stdout


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.long) for name in PROGRAM_NAMES]
)
def test_an_example_runs(tmp_path: Path, name: str) -> None:
    arguments, lines = SHOWN[name]
    printed = run(sys.executable, str(EXAMPLES / f"{name}.py"), *arguments, cwd=tmp_path)
    for line in lines:
        assert re.search(line, printed), printed


def test_the_example_of_a_test_passes(tmp_path: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={EXAMPLES}", "-c", os.devnull]
    printed = run(sys.executable, "-m", "pytest", *options, str(EXAMPLES / "test_my_queries.py"), cwd=tmp_path)
    assert "3 passed" in printed


def test_examples_are_short_and_listed() -> None:
    assert [path.stem for path in PROGRAMS] == sorted(SHOWN)
    assert all(len(path.read_text().splitlines()) < 100 for path in PROGRAMS)
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(SHOWN)
