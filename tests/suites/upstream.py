"""Small cases of DataFusion's defects: what is asked, and the right answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FILES = 12


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    right: int


AGGREGATES = Case("24816", "select min(a) as a, max(a) as b, min(c + 1) as m from t", 71)
DOUBLED_NAMES = (
    Case(
        "25262",
        "select s.id from tb s join (select a.id, b.id from ta a left join tb b on a.ty = b.id"
        " where a.id <> 'zz' or b.id is null) on s.id = b.id",
        1,
    ),
    Case(
        "25264",
        "select s.id from tb s join (select a.id, b.id from ta a left join tb b on a.ty = b.id"
        " group by a.id, b.id) on s.id = b.id",
        1,
    ),
)


def write_aggregates(directory: Path) -> Path:
    """All files have the same bounds of `a`; only the last has the smallest `c`."""
    home = directory / "aggregates"
    home.mkdir()
    for number in range(FILES):
        smallest = 70 if number == FILES - 1 else 90
        pq.write_table(pa.table({"a": [1, 8], "c": [smallest, 110]}), home / f"{number:02}.parquet")
    return home


def write_doubled_names(directory: Path) -> dict[str, Path]:
    tables = {"ta": pa.table({"id": ["a1"], "ty": ["x1"]}), "tb": pa.table({"id": ["x1"]})}
    for name, table in tables.items():
        pq.write_table(table, directory / f"{name}.parquet")
    return {name: directory / f"{name}.parquet" for name in tables}
