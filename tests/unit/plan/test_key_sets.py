"""Which key sets are chosen, and what the stages are then."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.first_stages import FirstStages
from sparkfusion.plan.key_set_choice import KeySetPolicy
from sparkfusion.plan.key_sets import drop_key_set, insert_key_sets, reduction_of
from sparkfusion.plan.scan_statistics import most_values, projected_bytes, row_count, scanned_column
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.plan.whole import keep_whole
from sparkfusion.plan.wire import PlanNode, copy_of, decode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context, find

ROWS = 20_000
POLICY = KeySetPolicy(least_bytes=1)
FILTERED = "select name, v from parts join sales on p = s where name = 'part 7'"
GROUPS = "select name, v from parts join sales on p = s where p in (select s from sales group by s having sum(v) > 9)"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    made = context({**NO_BROADCAST, "datafusion.optimizer.repartition_file_min_size": "1"})
    directory = tmp_path_factory.mktemp("tables")
    keys = range(ROWS // 20)
    write(
        made, directory, "parts", {"p": keys, "name": [f"part {key}" for key in keys], "color": [k % 3 for k in keys]}
    )
    write(made, directory, "sales", {"s": [row % len(keys) for row in range(ROWS)], "v": range(ROWS)})
    write(made, directory, "stock", {"i": [row % len(keys) for row in range(ROWS)], "q": range(ROWS)})
    write(made, directory, "colors", {"c": range(3), "shade": ["red", "green", "blue"]})
    return made


def write(session: SessionContext, directory: Path, name: str, columns: dict[str, object]) -> None:
    pq.write_table(pa.table(columns), directory / f"{name}.parquet", compression="none", use_dictionary=False)
    session.register_parquet(name, str(directory / f"{name}.parquet"))


def plan_of(tables: SessionContext, sql: str) -> PlanNode:
    return decode(tables.sql(sql).execution_plan().to_bytes(tables))


def graph_of(tables: SessionContext, sql: str, policy: KeySetPolicy | None = POLICY) -> StageGraph:
    return distribute(plan_of(tables, sql), SchemaProbe(context()), first=FirstStages(policy))


def key_sets(graph: StageGraph) -> list[tuple[str, ...]]:
    return [exchange.key_set.columns for exchange in graph.exchanges if exchange.key_set is not None]


def reductions(graph: StageGraph) -> int:
    joins = [node.hash_join for stage in graph.stages for node in walk(decode(stage.plan)) if kind(node) == "hash_join"]
    return sum(join.join_type == pb.RIGHT_SEMI and join.partition_mode == pb.COLLECT_LEFT for join in joins)


def test_a_filtered_table_reduces_a_larger_one(tables: SessionContext) -> None:
    graph = graph_of(tables, FILTERED)
    (keys,) = [exchange for exchange in graph.exchanges if exchange.key_set is not None]
    assert keys.key_set is not None
    assert (keys.key_set.columns, keys.key_set.values) == (("p",), ROWS // 20)
    assert keys.kind is ExchangeKind.BROADCAST
    assert reductions(graph) == 1
    (reader,) = [stage for stage in graph.stages if keys.id in stage.inputs]
    assert "sales" in find(decode(reader.plan), "parquet_scan").parquet_scan.base_conf.file_groups[0].files[0].path


@pytest.mark.parametrize(
    ("sql", "policy"),
    [
        (FILTERED, None),
        (FILTERED, KeySetPolicy(least_bytes=1 << 40)),
        ("select name, v from parts join sales on p = s", POLICY),
        ("select name, v from parts join sales on p = s where v = 7", POLICY),
        ("select shade, v from colors join sales on c = s % 3 where shade = 'red'", KeySetPolicy(least_bytes=1 << 30)),
        ("select name, shade from parts join colors on color = c where name = 'part 7'", POLICY),
    ],
    ids=["off", "small", "no filter", "a filter on the larger table", "small, computed", "keys that come often"],
)
def test_a_key_set_that_would_not_pay_is_not_planned(
    tables: SessionContext, sql: str, policy: KeySetPolicy | None
) -> None:
    assert key_sets(graph_of(tables, sql, policy)) == []


def test_a_reduced_table_reduces_the_next_one(tables: SessionContext) -> None:
    sql = "select name, v from colors join parts on c = color join sales on p = s where shade = 'red'"
    assert key_sets(graph_of(tables, sql)) == [("c",), ("p",)]


def test_the_small_side_of_the_first_join_of_a_large_scan_is_reduced(tables: SessionContext) -> None:
    """The join then leaves fewer rows of the scan, and the scan decodes fewer rows."""
    sql = "select name, v from colors join parts on c = color join sales on p = s where shade = 'red'"
    policy = KeySetPolicy(least_bytes=10_000, shuffles=False)
    graph = keep_whole(plan_of(tables, sql), ["name", "v"], 3, SchemaProbe(context()), FirstStages(policy))
    assert key_sets(graph) == [("c",), ("p",)]
    found = [each for node in walk(decode(graph.stages[-1].plan)) if (each := reduction_of(node)) is not None]
    scans = [find(each.reduced, "parquet_scan").parquet_scan.base_conf for each in found]
    assert sorted(Path(conf.file_groups[0].files[0].path).stem for conf in scans) == ["parts", "sales"]


@pytest.mark.parametrize(("least_bytes", "most"), [(10_000, [ROWS // 1000]), (100_000, [])], ids=["large", "small"])
def test_a_large_scan_decodes_only_rows_with_a_key_of_its_first_join(
    tables: SessionContext, least_bytes: int, most: list[int]
) -> None:
    """With more keys than a fiftieth of all, it would gain nothing."""
    policy = KeySetPolicy(least_bytes=least_bytes, shuffles=False)
    graph = keep_whole(plan_of(tables, FILTERED), ["name", "v"], 3, SchemaProbe(context()), FirstStages(policy))
    assert [exchange.key_set.most for exchange in graph.exchanges if exchange.key_set is not None] == most
    assert reductions(graph) == len(most)


MULTIPLIED = "select name, v, q from sales join stock on s = i join parts on p = s where name = 'part 7'"
FILTERED_FIRST = "select name, v, q from sales join parts on p = s join stock on s = i where name = 'part 7'"


@pytest.mark.parametrize("whole", [True, False], ids=["one task", "split"])
@pytest.mark.parametrize(
    ("sql", "many_rows", "found"),
    [
        (MULTIPLIED, 400_000, [("p",)]),
        (MULTIPLIED, 400_001, []),  # 20 sales of a part with 20 stocks of it: 400 rows for each of 1000 parts
        (FILTERED_FIRST, 400_000, []),
        ("select name, v from sales join parts on p = s where name = 'part 7'", 1, []),
    ],
    ids=["many rows", "fewer rows", "the filter comes first", "rows that are not multiplied"],
)
def test_small_scans_are_reduced_whose_rows_a_join_multiplies(
    tables: SessionContext, sql: str, many_rows: int, found: list[tuple[str]], whole: bool
) -> None:
    policy = KeySetPolicy(least_bytes=1 << 40, many_rows=many_rows, shuffles=not whole)
    plan, probe, first = plan_of(tables, sql), SchemaProbe(context()), FirstStages(policy)
    graph = keep_whole(plan, ["name", "v", "q"], 3, probe, first) if whole else distribute(plan, probe, first=first)
    assert key_sets(graph) == found
    assert reductions(graph) == 2 * len(found)  # `sales` and `stock`


def test_groups_whose_scans_are_reduced_may_reduce_the_scans_of_other_groups(tables: SessionContext) -> None:
    """The scans of the first groups are changed when the second groups are."""
    sql = (
        "select name from parts join (select s, sum(v) from sales group by s having sum(v) > 9) on p = s "
        "join (select i, sum(q) from stock group by i having sum(q) > 9) on p = i "
        "join sales t on t.s = i where name = 'part 7'"
    )
    assert key_sets(graph_of(tables, sql)) == [("p",), ("s",), ("i",)]


def test_a_scan_is_reduced_for_its_first_join_and_for_an_aggregate(tables: SessionContext) -> None:
    sql = (
        "select a.name, v from parts a join sales on a.p = s join (select s as t, sum(v) as u from sales group by s) g "
        "on g.t = a.p where a.name = 'part 7'"
    )
    policy = KeySetPolicy(least_bytes=10_000, shuffles=False)
    graph = keep_whole(plan_of(tables, sql), ["name", "v"], 3, SchemaProbe(context()), FirstStages(policy))
    assert key_sets(graph) == [("p",)]
    assert reductions(graph) == 2  # below the aggregate, and above the other scan
    (keys,) = [exchange for exchange in graph.exchanges if exchange.key_set is not None]
    assert keys.key_set is not None
    assert keys.key_set.most == ROWS // 1000
    below_the_aggregate = drop_key_set(graph, keys.id, only_filters=True)
    assert reductions(below_the_aggregate) == 1
    assert reductions(drop_key_set(graph, keys.id)) == 0


def test_groups_that_are_filtered_are_computed_once(tables: SessionContext) -> None:
    graph = graph_of(tables, GROUPS)
    assert key_sets(graph) == [("s",)]
    assert reductions(graph) == 2  # parts and the other scan of sales
    scans = [node for stage in graph.stages for node in walk(decode(stage.plan)) if kind(node) == "parquet_scan"]
    assert len(scans) == 3


@pytest.mark.parametrize("sql", [FILTERED, GROUPS])
def test_a_whole_plan_has_a_stage_for_each_key_set(tables: SessionContext, sql: str) -> None:
    graph = keep_whole(plan_of(tables, sql), ["name", "v"], 3, SchemaProbe(context()), FirstStages(POLICY))
    assert [(stage.whole, stage.inputs) for stage in graph.stages] == [(True, ()), (True, (1,))]
    assert reductions(graph) == (2 if sql == GROUPS else 1)


@pytest.mark.parametrize("sql", [FILTERED, GROUPS])
def test_a_dropped_key_set_reduces_nothing(tables: SessionContext, sql: str) -> None:
    graph = graph_of(tables, sql)
    (keys,) = [exchange for exchange in graph.exchanges if exchange.key_set is not None]
    dropped = drop_key_set(graph, keys.id)
    assert reductions(dropped) == 0
    readers = [stage.id for stage in dropped.stages if keys.id in stage.inputs]
    assert len(readers) == (1 if sql == GROUPS else 0)  # the groups themselves are rows of the query


def test_what_statistics_tell(tables: SessionContext) -> None:
    root = plan_of(tables, "select v + 1, s from sales where s > 5")
    scan = find(copy_of(root), "parquet_scan").parquet_scan.base_conf
    assert row_count(scan) == ROWS
    assert [most_values(scan, column) for column in (0, 1, 2)] == [ROWS // 20, ROWS, None]
    size = scan.file_groups[0].files[0].size
    assert projected_bytes(scan) == size
    (one_column,) = [node for node in walk(plan_of(tables, "select s from sales")) if kind(node) == "parquet_scan"]
    assert projected_bytes(one_column.parquet_scan.base_conf) == size // 2
    assert [scanned_column(root, column) for column in (0, 1)] == [None, 0]


@pytest.mark.parametrize(
    ("sql", "policy"),
    [
        ("select s, count(*) from sales group by s", POLICY),
        (FILTERED, KeySetPolicy(least_bytes=100_000)),  # `sales` reads 320 kB, less than four times as much
        (GROUPS, KeySetPolicy(least_bytes=1_000_000)),
    ],
    ids=["no join", "small scans", "small scans and groups"],
)
def test_a_plan_that_can_have_no_key_set_is_not_searched(
    tables: SessionContext, sql: str, policy: KeySetPolicy
) -> None:
    search = Mock()
    insert_key_sets(plan_of(tables, sql), search, search, policy)
    search.assert_not_called()


def test_groups_may_reduce_scans_that_are_not_large(tables: SessionContext) -> None:
    assert key_sets(graph_of(tables, GROUPS, KeySetPolicy(least_bytes=100_000))) == [("s",)]
