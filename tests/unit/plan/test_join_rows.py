"""How many rows joins give, by the statistics of files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

from sparkfusion.plan.join_rows import JoinRows, rows_of
from sparkfusion.plan.wire import PlanNode, decode, file_scan_conf, walk
from tests.unit.plan.plans import NO_BROADCAST, context

ROWS = 1000
KEYS = 10


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    made = context(NO_BROADCAST)
    directory = tmp_path_factory.mktemp("tables")
    keys = [row % KEYS for row in range(ROWS)]
    for name in "abc":
        columns = {"k": keys, "u": list(range(ROWS)), "name": [f"name {key}" for key in keys]}
        path = directory / f"{name}.parquet"
        pq.write_table(pa.table({f"{name}_{column}": values for column, values in columns.items()}), path)
        made.register_parquet(name, str(path))
    pyarrow.csv.write_csv(pa.table({"x_k": keys}), directory / "x.csv")
    made.register_csv("x", str(directory / "x.csv"))
    return made


def scan_of(root: PlanNode, table: str) -> PlanNode:
    scans = [node for node in walk(root) if (conf := file_scan_conf(node)) is not None and conf.file_groups]
    (found,) = [node for node in scans if Path(file_of(node)).stem == table]
    return found


def file_of(scan: PlanNode) -> str:
    conf = file_scan_conf(scan)
    assert conf is not None
    return conf.file_groups[0].files[0].path


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from a join b on a_k = b_k join c on b_u = c_u", ROWS * ROWS / KEYS),
        ("select a_name, b_u from a join b on a_k = b_k join c on b_u = c_u", ROWS * ROWS / KEYS),
        ("select * from a join b on a_u = b_u join c on b_u = c_u", ROWS),
        ("select * from a join b on a_u = b_k join c on b_u = c_u", ROWS),
        ("select * from a join b on a_k = b_k and a_u = b_u join c on b_u = c_u", ROWS),
        ("select * from (select * from a where a_u + 1 > 7) join b on a_k = b_k join c on b_u = c_u", ROWS * ROWS / 50),
        ("select * from a left join b on a_u = b_u and b_u + 1 > 7 join c on a_u = c_u", ROWS),
        ("select * from (select *, a_k + 1 as n from a) join b on n = b_k join c on b_u = c_u", 0),
        ("select * from (select * from a limit 900) join b on a_k = b_k join c on b_u = c_u", 0),
        ("select * from a join x on a_k = x_k join c on a_u = c_u", 0),
        ("select * from (select a_k, count(*) as n from a group by a_k) join b on a_k = b_k join c on b_u = c_u", 0),
    ],
    ids=[
        "keys that come often",
        "some columns",
        "unique keys",
        "unique on one side",
        "two keys",
        "a filter",
        "outer join",
        "computed key",
        "limit",
        "a file without statistics",
        "aggregate",
    ],
)
def test_rows_of_the_joins_before_the_last_table(tables: SessionContext, sql: str, expected: float) -> None:
    root = decode(tables.sql(sql).execution_plan().to_bytes(tables))
    rows = JoinRows(root)
    assert rows.before(scan_of(root, "a"), scan_of(root, "c")) == pytest.approx(expected)


def test_joins_with_the_source_do_not_count(tables: SessionContext) -> None:
    sql = "select * from a join b on a_u = b_u join c on b_k = c_k"
    root = decode(tables.sql(sql).execution_plan().to_bytes(tables))
    rows = JoinRows(root)
    a, b, c = (scan_of(root, name) for name in "abc")
    assert rows_of(a) == ROWS
    assert rows.before(a, b) == 0
    assert rows.before(a, c) == ROWS
    assert rows.before(c, a) == 0


@pytest.mark.parametrize(("least", "factor", "expected"), [(100_000, 100, True), (100_001, 1, False), (1, 101, False)])
def test_whether_a_join_multiplies(tables: SessionContext, least: int, factor: int, expected: bool) -> None:
    sql = "select * from a join b on a_k = b_k"
    root = decode(tables.sql(sql).execution_plan().to_bytes(tables))
    assert JoinRows(root).multiplies(least, factor) is expected
