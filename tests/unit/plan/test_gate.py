"""What may not be distributed, and the reason given."""

from __future__ import annotations

import pytest

from sparkfusion.plan.gate import NotDistributableError, check_logical, check_physical
from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, hash_repartition
from tests.unit.plan.plans import context, plan


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("extension", "extension node"),
        ("explain", "EXPLAIN is not distributed"),
        ("analyze", "EXPLAIN ANALYZE is not distributed"),
        ("symmetric_hash_join", "unbounded streams"),
        ("scalar_subquery", "scalar subquery"),
        ("async_func", "asynchronous function"),
    ],
)
def test_nodes_that_stay(name: str, reason: str) -> None:
    node = PlanNode()
    getattr(node, name).SetInParent()
    with pytest.raises(NotDistributableError, match=reason):
        check_physical(coalesce(node))


def test_a_node_of_a_later_format_is_refused() -> None:
    unknown = PlanNode.FromString(b"\xfa\x3e\x00")  # field 1007, empty
    with pytest.raises(NotDistributableError, match="does not know"):
        check_physical(coalesce(unknown))


@pytest.mark.parametrize("name", ["parquet_sink", "csv_sink", "json_sink"])
def test_sinks_do_not_travel(name: str) -> None:
    sink = PlanNode()
    getattr(sink, name).input.CopyFrom(plan("select k from t"))
    for node in (sink, coalesce(sink)):
        with pytest.raises(NotDistributableError, match="an encoded plan lacks options of the writer"):
            check_physical(node)


def test_repartitions_that_merge_sorted_inputs_are_refused() -> None:
    node = hash_repartition(plan("select k from t"), [], 3)
    check_physical(node)
    node.repartition.preserve_order = True
    with pytest.raises(NotDistributableError, match="merges sorted inputs"):
        check_physical(node)


def test_range_partitioning_is_refused() -> None:
    node = hash_repartition(plan("select k from t"), [], 3)
    node.repartition.partitioning.range.SetInParent()
    with pytest.raises(NotDistributableError, match="range partitioning"):
        check_physical(node)


def test_empty_grouping_sets_are_refused() -> None:
    check_physical(plan("select k, count(*) from t group by rollup (k)"))
    with pytest.raises(NotDistributableError, match="GROUPING SETS"):
        check_physical(plan("select count(*) from t group by grouping sets (())"))


def scan_of(name: str, path: str) -> PlanNode:
    node = PlanNode()
    getattr(node, name).base_conf.file_groups.add().files.add(path=path)
    return node


@pytest.mark.parametrize("suffix", ["gz", "gzip", "bz2", "xz", "zst", "zstd", "GZ"])
@pytest.mark.parametrize("name", ["csv_scan", "json_scan"])
def test_compressed_text_is_refused(name: str, suffix: str) -> None:
    check_physical(scan_of(name, "data/a.txt"))
    check_physical(scan_of(name, "data/a.lz4"))  # DataFusion cannot unpack it, so the file is what it seems
    check_physical(scan_of("parquet_scan", f"data/a.{suffix}"))
    with pytest.raises(NotDistributableError, match="compression of 'data/a"):
        check_physical(scan_of(name, f"data/a.{suffix}"))


def test_scans_that_declare_their_partitioning_are_refused() -> None:
    node = scan_of("parquet_scan", "data/a.parquet")
    node.parquet_scan.base_conf.output_partitioning.hash.partition_count = 3
    with pytest.raises(NotDistributableError, match="a table's scan fixes how its files are partitioned"):
        check_physical(node)


def logical(sql: str) -> str:
    return context().sql(sql).logical_plan().display_indent()


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select sum(v) filter (where k > 0) over (partition by k) from t", "FILTER"),
        ("select last_value(v) ignore nulls over (partition by k) from t", "IGNORE NULLS"),
        ("select k from t where v in (select lag(v) ignore nulls over (order by k) from u)", "IGNORE NULLS"),
    ],
)
def test_window_options_that_the_wire_loses(sql: str, reason: str) -> None:
    with pytest.raises(NotDistributableError, match=f"{reason} on a window function"):
        check_logical(logical(sql), {})


@pytest.mark.parametrize(
    "sql",
    [
        "select sum(v) filter (where k > 0) from t",
        "select first_value(v order by k) ignore nulls from t",
        "select sum(v) over (partition by k order by v) from t",
        "select s from t where s = 'IGNORE NULLS'",
    ],
)
def test_what_looks_like_them_passes(sql: str) -> None:
    check_logical(logical(sql), {})


def test_a_table_with_lost_options_is_named() -> None:
    with pytest.raises(NotDistributableError, match="table 'logs': option 'terminator' is lost"):
        check_logical("", {"logs": "option 'terminator'"})


def test_every_join_type_is_known() -> None:
    assert len(pb.JoinType.values()) == 10
