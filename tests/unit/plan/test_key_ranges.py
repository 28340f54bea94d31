"""The range of a key set in the predicate of the scan that it reduces."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.ids import SourceFile
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.key_ranges import KeyRange, prune_by_key_ranges
from sparkfusion.plan.key_sets import KeySetPolicy
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.wire import PlanNode, decode, encode
from sparkfusion.worker.key_set_files import read_key_range
from tests.unit.plan.plans import NO_BROADCAST, context, find

ROWS = 3000
RANGE = KeyRange(7, 9, "int64")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    made = context(NO_BROADCAST, target_partitions=2)
    directory = tmp_path_factory.mktemp("tables")
    for name, rows in (("parts", 100), ("sales", ROWS)):
        columns = {"v": range(rows), "k": pa.array(range(rows), pa.int64())}
        pq.write_table(pa.table(columns), directory / f"{name}.parquet", row_group_size=500)
        made.register_parquet(name, str(directory / f"{name}.parquet"))
    return made


def reduced_scan(tables: SessionContext, where: str = "true") -> PlanNode:
    """The stage that scans the large table, whose keys are not known yet."""
    sql = f"select p.v, s.v as w from parts p join sales s on p.k = s.k where p.v < 3 and {where}"
    root = decode(tables.sql(sql).execution_plan().to_bytes(tables))
    graph = distribute(root, SchemaProbe(context()), key_sets=KeySetPolicy(least_bytes=1))
    (keys,) = [exchange.id for exchange in graph.exchanges if exchange.key_set is not None]
    (stage,) = [stage for stage in graph.stages if keys in stage.inputs]
    return decode(stage.plan)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("true", "predicate=k@1 >= 7 AND k@1 <= 9"),
        ("s.v % 2 = 0", "predicate=v@0 % 2 = 0 AND k@1 >= 7 AND k@1 <= 9"),
    ],
    ids=["without a filter", "with a filter"],
)
def test_the_scan_gets_the_range(tables: SessionContext, where: str, expected: str) -> None:
    root = reduced_scan(tables, where)
    prune_by_key_ranges(root, lambda exchange, column: RANGE)
    shown = ExecutionPlan.from_bytes(context(), encode(root)).display_indent()
    assert expected in shown


def test_without_a_range_the_scan_stays_as_it_is(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    before = encode(root)
    prune_by_key_ranges(root, lambda exchange, column: None)
    assert encode(root) == before


def test_row_groups_without_a_key_are_not_read(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    prune_by_key_ranges(root, lambda exchange, column: RANGE)
    scan = find(root, "parquet_scan")
    session = context()
    plan = ExecutionPlan.from_bytes(session, encode(scan))
    read = [
        batch.to_pyarrow().num_rows for part in range(plan.partition_count) for batch in session.execute(plan, part)
    ]
    assert 0 < sum(read) <= 500


DATES = [datetime.date(2026, 11, 17), None, datetime.date(1969, 12, 31)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (pa.array([5, None, -3], pa.int32()), KeyRange(-3, 5, "int32")),
        (pa.array([2**63 + 1], pa.uint64()), KeyRange(2**63 + 1, 2**63 + 1, "uint64")),
        (pa.array(DATES, pa.date32()), KeyRange(-1, 20_774, "date32")),
        (pa.array([None], pa.int64()), None),
        (pa.array([], pa.int64()), None),
        (pa.array(["a"], pa.string()), None),
        (pa.array([1.5], pa.float64()), None),
    ],
    ids=["int32", "uint64", "date32", "only nulls", "no rows", "text", "float"],
)
def test_the_range_of_keys_in_files(tmp_path: Path, keys: pa.Array, expected: KeyRange | None) -> None:
    batches = [pa.record_batch({"x": keys, "k": keys}).slice(row, 1) for row in range(len(keys))]
    files = []
    for number, batch in enumerate(batches):
        path = tmp_path / f"{number}.arrow"
        with pa.ipc.new_file(path, batch.schema) as writer:
            writer.write_batch(batch)
        files.append(SourceFile(str(path), path.stat().st_size))
    assert read_key_range(files, 1) == expected
