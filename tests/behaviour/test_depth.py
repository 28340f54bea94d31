"""Expressions and plans that are too deep to be decoded: a single node answers, and nobody dies."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session


@pytest.mark.parametrize(
    ("expression", "answer", "distributed"),
    [
        ("k" + " + 1" * 150, 6 + 3 * 150, True),
        ("k" + " + 1" * 400, 6 + 3 * 400, False),
        ("k" + " + 1 - 2" * 60, 6 - 3 * 60, False),
    ],
    ids=["short chain", "long chain", "nested"],
)
def test_a_deep_expression_is_answered(
    session: Session, tmp_path: Path, expression: str, answer: int, distributed: bool
) -> None:
    for number in range(3):
        pq.write_table(pa.table({"k": [number + 1]}), tmp_path / f"{number}.parquet")
    session.register_parquet("deep", str(tmp_path))
    frame = session.sql(f"select sum({expression}) as s from deep")
    found = frame.distribution()
    assert found.distributed == distributed
    assert distributed or "nested too deep" in (found.reason or "")
    assert frame.to_pylist() == [{"s": answer}]
