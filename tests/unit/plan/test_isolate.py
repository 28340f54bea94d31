"""One task's plan: only its own partitions, and one partition in all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import InternalError
from sparkfusion.ids import SourceFile
from sparkfusion.plan.isolate import restrict
from sparkfusion.plan.sources import bind, exchange_of, exchange_source, exchanges_read
from sparkfusion.plan.void import void
from sparkfusion.plan.wire import PlanNode, copy_of, decode, encode, partition_count
from sparkfusion.plan.wire.build import coalesce, union
from tests.unit.plan.plans import context, find, plan, shape, tree


def rows_of(node: PlanNode) -> list[dict[str, object]]:
    """Run a plan of one partition on its own."""
    assert partition_count(node) == 1
    made = SessionContext()
    decoded = ExecutionPlan.from_bytes(made, encode(node))
    batches = [frame.to_pyarrow() for frame in made.execute(decoded, 0)]
    return [row for batch in batches for row in batch.to_pylist()]


def task(node: PlanNode, *partitions: int) -> PlanNode:
    made = copy_of(node)
    restrict(made, partitions)
    return made


def test_tasks_of_a_scan_add_up_to_the_table() -> None:
    whole = plan("select k, v from t where k >= 0")
    found = [row for p in range(3) for row in rows_of(task(whole, p))]
    assert sorted(row["k"] for row in found) == [0, 1, 1, 2, 2, 3]  # type: ignore[type-var]


def test_tasks_of_a_union_belong_to_one_child_each() -> None:
    whole = plan("select k from t union all select k + 100 as k from u union all select 7 as k")
    counts = [partition_count(child) for child in whole.union.inputs]
    assert counts == [3, 2, 1]
    found = [sorted(row["k"] for row in rows_of(task(whole, p))) for p in range(sum(counts))]  # type: ignore[type-var]
    assert found == [[0, 1], [1, 2], [2, 3], [100, 101], [101, 102], [7]]


def test_an_interleave_restricts_every_child() -> None:
    node = PlanNode()
    node.interleave.inputs.extend([exchange_source(1, 3, b"", 0), exchange_source(2, 3, b"", 0)])
    restrict(node, (1,))
    assert shape(node) == tree("""
        coalesce_partitions
          union x2
            arrow_scan
            arrow_scan
    """)
    paths = [
        f.path
        for scan in node.coalesce_partitions.input.union.inputs
        for g in scan.arrow_scan.base_conf.file_groups
        for f in g.files
    ]
    assert paths == ["sparkfusion-exchange/1/1", "sparkfusion-exchange/2/1"]


def test_several_partitions_of_a_shuffle_become_one() -> None:
    source = exchange_source(4, 5, b"", 0)
    restrict(source, (1, 3))
    (group,) = source.arrow_scan.base_conf.file_groups
    assert [file.path for file in group.files] == ["sparkfusion-exchange/4/1", "sparkfusion-exchange/4/3"]


def test_a_merge_reads_every_group_of_its_exchange() -> None:
    merge = coalesce(exchange_source(4, 5, b"", 0))
    restrict(merge, (0,))
    assert len(merge.coalesce_partitions.input.arrow_scan.base_conf.file_groups) == 5


def test_the_left_side_of_a_collecting_join_stays_whole() -> None:
    whole = find(plan("select t.v, u.v as w from u join t on u.k < t.k"), "nested_loop_join")
    whole.nested_loop_join.left.CopyFrom(coalesce(exchange_source(1, 4, b"", 0)))
    restrict(whole, (2,))
    assert shape(whole) == tree("""
        nested_loop_join
          coalesce_partitions
            arrow_scan x4
          memory_scan
    """)


def test_a_merge_that_was_not_cut_is_a_defect_of_ours() -> None:
    with pytest.raises(InternalError, match="a merge of 3 partitions was left inside a stage"):
        restrict(coalesce(plan("select k from t")), (0,))


def test_files_take_the_place_of_placeholders() -> None:
    node = coalesce(exchange_source(7, 2, b"", 0))
    assert exchanges_read(node) == (7,)
    committed = {0: [SourceFile("/store/a", 10), SourceFile("/store/b", 20)], 1: []}
    bind(node, lambda exchange, group: committed[group] if exchange == 7 else [])
    first, second = node.coalesce_partitions.input.arrow_scan.base_conf.file_groups
    assert [(file.path, file.size) for file in first.files] == [("store/a", 10), ("store/b", 20)]
    assert list(second.files) == []
    assert exchange_of(node.coalesce_partitions.input) is None


def test_a_void_plan_has_its_schema_and_no_rows() -> None:
    assert rows_of(coalesce(void(plan("select k, v from t where k > 0")))) == []
    assert rows_of(coalesce(void(union([plan("select k from t"), plan("select 1 as k")])))) == []
    assert rows_of(void(coalesce(plan("select * from generate_series(1, 5)")))) == []


def test_a_void_plan_touches_no_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    made = context()
    made.register_parquet("f", str(tmp_path / "a.parquet"))
    node = void(decode(made.sql("select a from f").execution_plan().to_bytes(made)))
    assert not [file for group in node.parquet_scan.base_conf.file_groups for file in group.files]
