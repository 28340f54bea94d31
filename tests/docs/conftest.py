"""The table that the snippets speak of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def lineitem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table that the snippets speak of, in a few files, in the current directory."""
    directory = tmp_path / "data" / "lineitem"
    directory.mkdir(parents=True)
    for number in range(3):
        rows = range(number * 50_000, (number + 1) * 50_000)
        table = pa.table(
            {
                "l_orderkey": [row // 4 for row in rows],
                "l_returnflag": ["ANR"[row % 3] for row in rows],
                "l_quantity": [float(row % 50) for row in rows],
                "l_comment": [f"comment {row}" for row in rows],
            }
        )
        pq.write_table(table, directory / f"{number}.parquet")
    (tmp_path / "queries.sql").write_text("select l_returnflag, count(*) from lineitem group by 1;")
    monkeypatch.chdir(tmp_path)
    return tmp_path
