"""A key set in the predicate of the scan that it reduces."""

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
from sparkfusion.plan.first_stages import FirstStages
from sparkfusion.plan.key_filters import Keys, filter_by_keys
from sparkfusion.plan.key_set_choice import KeySetPolicy
from sparkfusion.plan.key_sets import reduction_of
from sparkfusion.plan.scan_statistics import most_filter_keys
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.wire import PlanNode, copy_of, decode, encode, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import cooperative
from sparkfusion.worker.key_set_files import read_keys
from tests.unit.plan.plans import NO_BROADCAST, context, find

ROWS = 3000
RANGE = Keys(7, 9, "int64")


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
    graph = distribute(root, SchemaProbe(context()), first=FirstStages(KeySetPolicy(least_bytes=1)))
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
    filter_by_keys(root, lambda exchange, column: RANGE)
    shown = ExecutionPlan.from_bytes(context(), encode(root)).display_indent()
    assert expected in shown


def test_without_a_range_the_scan_stays_as_it_is(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    before = encode(root)
    filter_by_keys(root, lambda exchange, column: None)
    assert encode(root) == before


def test_row_groups_without_a_key_are_not_read(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    filter_by_keys(root, lambda exchange, column: RANGE)
    scan = find(root, "parquet_scan")
    session = context()
    plan = ExecutionPlan.from_bytes(session, encode(scan))
    read = [
        batch.to_pyarrow().num_rows for part in range(plan.partition_count) for batch in session.execute(plan, part)
    ]
    assert 0 < sum(read) <= 500


def rows_scanned(scan: PlanNode) -> list[int]:
    """The keys of the rows that a scan gives."""
    session = context()
    plan = ExecutionPlan.from_bytes(session, encode(scan))
    parts = [session.execute(plan, part) for part in range(plan.partition_count)]
    return [key for part in parts for batch in part for key in batch.to_pyarrow().column("k").to_pylist()]


def test_a_scan_gives_only_rows_with_one_of_few_keys(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    filter_by_keys(root, lambda exchange, column: Keys(7, 900, "int64", (7, 30, 900)))
    scan = find(root, "parquet_scan")
    shown = ExecutionPlan.from_bytes(context(), encode(scan)).display_indent()
    assert "predicate=k@1 IN (SET) ([7, 30, 900]) AND k@1 >= 7 AND k@1 <= 900" in shown
    assert sorted(rows_scanned(scan)) == [7, 30, 900]


def test_other_conditions_are_tried_for_rows_with_a_key(tables: SessionContext) -> None:
    root = reduced_scan(tables, "s.v % 2 = 0")
    filter_by_keys(root, lambda exchange, column: Keys(7, 900, "int64", (7, 30, 900)))
    scan = find(root, "parquet_scan")
    shown = ExecutionPlan.from_bytes(context(), encode(scan)).display_indent()
    assert "predicate=k@1 IN (SET) ([7, 30, 900]) AND v@0 % 2 = 0 AND k@1 >= 7" in shown
    assert sorted(rows_scanned(scan)) == [30, 900]


def test_a_scan_looks_for_the_keys_of_several_sets(tables: SessionContext) -> None:
    """The lower one is marked as one for which the scan only decodes fewer rows."""
    root = reduced_scan(tables)
    (lower,) = [node for node in walk(root) if reduction_of(node) is not None]
    upper = copy_of(lower)
    upper.cooperative.input.hash_join.right.CopyFrom(cooperative(lower))
    lower.CopyFrom(upper)
    found = iter([Keys(7, 900, "int64", (7, 30, 900)), Keys(5, 30, "int64", (5, 30))])
    filter_by_keys(root, lambda exchange, column: next(found))
    assert rows_scanned(find(root, "parquet_scan")) == [30]


def test_a_semi_join_in_which_null_equals_null_does_not_filter(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    (join,) = [node.cooperative.input.hash_join for node in walk(root) if reduction_of(node) is not None]
    join.null_equality = pb.NULL_EQUALS_NULL
    before = encode(root)
    filter_by_keys(root, lambda exchange, column: Keys(7, 900, "int64", (7, 30, 900)))
    assert encode(root) == before


@pytest.mark.parametrize("changed", ["columns", "limit"])
def test_keys_are_not_looked_for_below_a_semi_join_that_gives_something_else(
    tables: SessionContext, changed: str
) -> None:
    root = reduced_scan(tables)
    (lower,) = [node for node in walk(root) if reduction_of(node) is not None]
    upper = copy_of(lower)
    if changed == "columns":
        lower.cooperative.input.hash_join.projection.extend([1, 0])
    else:
        lower.cooperative.input.hash_join.fetch = 3
    upper.cooperative.input.hash_join.right.CopyFrom(lower)
    lower.CopyFrom(upper)
    asked: list[int] = []

    def keys_of(exchange: int, column: int) -> Keys:
        asked.append(column)
        return Keys(7, 900, "int64", (7, 30, 900))

    filter_by_keys(root, keys_of)
    shown = ExecutionPlan.from_bytes(context(), encode(find(root, "parquet_scan"))).display_indent()
    assert len(asked) == 1
    assert shown.count(" predicate=k@1 IN (SET) ([7, 30, 900]) AND k@1 >= 7") == 1


def test_a_long_list_does_not_prune(tables: SessionContext) -> None:
    """DataFusion would make a condition as deep as the list is long."""
    root = reduced_scan(tables)
    options = getattr(find(root, "parquet_scan").parquet_scan.options, "global")
    options.max_in_list_size = 10_000
    filter_by_keys(root, lambda exchange, column: Keys(7, 900, "int64", (7, 30, 900)))
    assert options.max_in_list_size == 20


@pytest.mark.parametrize("keys", [ROWS // 50 + 1, ROWS], ids=["a fiftieth", "all"])
def test_many_keys_are_looked_for_above_the_scan(tables: SessionContext, keys: int) -> None:
    root = reduced_scan(tables)
    filter_by_keys(root, lambda exchange, column: Keys(0, keys, "int64", tuple(range(keys))))
    scan = find(root, "parquet_scan")
    assert "IN (SET)" not in ExecutionPlan.from_bytes(context(), encode(scan)).display_indent()
    assert not getattr(scan.parquet_scan.options, "global").pushdown_filters


def test_a_scan_of_keys_alone_is_not_filtered(tables: SessionContext) -> None:
    root = reduced_scan(tables)
    conf = find(root, "parquet_scan").parquet_scan.base_conf
    assert most_filter_keys(conf, 1) > 0
    conf.ClearField("projection_exprs")
    del conf.projection[:]
    conf.projection.append(1)
    assert most_filter_keys(conf, 1) == 0


DATES = [datetime.date(2026, 11, 17), None, datetime.date(1969, 12, 31)]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (pa.array([5, None, -3], pa.int32()), Keys(-3, 5, "int32", (-3, 5))),
        (pa.array([2**63 + 1], pa.uint64()), Keys(2**63 + 1, 2**63 + 1, "uint64", (2**63 + 1,))),
        (pa.array(DATES, pa.date32()), Keys(-1, 20_774, "date32", (-1, 20_774))),
        (pa.array([None], pa.int64()), None),
        (pa.array([], pa.int64()), None),
        (pa.array(["a"], pa.string()), None),
        (pa.array([1.5], pa.float64()), None),
    ],
    ids=["int32", "uint64", "date32", "only nulls", "no rows", "text", "float"],
)
def test_the_keys_in_files(tmp_path: Path, keys: pa.Array, expected: Keys | None) -> None:
    batches = [pa.record_batch({"x": keys, "k": keys}).slice(row, 1) for row in range(len(keys))]
    files = []
    for number, batch in enumerate(batches):
        path = tmp_path / f"{number}.arrow"
        with pa.ipc.new_file(path, batch.schema) as writer:
            writer.write_batch(batch)
        files.append(SourceFile(str(path), path.stat().st_size))
    assert read_keys(files, 1) == expected
