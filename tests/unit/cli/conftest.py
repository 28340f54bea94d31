"""A command line without a process: arguments in, exit code and both outputs out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from sparkfusion.cli.app import app

Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=stdin, prog_name="sparkfusion")

    return run


@pytest.fixture
def items(tmp_path: Path) -> str:
    """`-t` value of a table of 1000 rows in four files: id 0…999, part 0…9 or NULL for every hundredth row."""
    directory = tmp_path / "items"
    directory.mkdir()
    for number in range(4):
        ids = range(number * 250, number * 250 + 250)
        parts = [None if n % 100 == 0 else n % 10 for n in ids]
        pq.write_table(pa.table({"id": list(ids), "part": parts}), directory / f"{number}.parquet")
    return f"items={directory}"
