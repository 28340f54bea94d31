"""Which exchanges a query is cut at."""

from __future__ import annotations

import pytest

from sparkfusion.plan.cut import cut
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode
from sparkfusion.plan.wire.build import coalesce
from tests.unit.plan.plans import NO_BROADCAST, context, find, plan, shape, tree


def graph_of(sql: str, options: dict[str, str] | None = None) -> StageGraph:
    return distribute(plan(sql, options), SchemaProbe(context()))


def exchanges(graph: StageGraph) -> list[str]:
    """`kind(keys) of N tasks`, in the order of the stages."""
    found = []
    for exchange in graph.exchanges:
        keys = f"({', '.join(exchange.keys)})" if exchange.keys else ""
        found.append(f"{exchange.kind}{keys} of {graph.producer_of(exchange.id).task_count}")
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select k from t", ["gather of 3"]),
        ("select k, sum(v) from t group by k", ["shuffle(k) of 3", "gather of 3"]),
        ("select sum(v) from t", ["gather of 3"]),
        ("select k from t order by v", ["gather of 3"]),
        ("select k from t order by v limit 2", ["gather of 3"]),
        ("select t.v from t cross join u", ["broadcast of 2", "gather of 3"]),
        ("select sum(v) over (partition by k) as w from t", ["shuffle(k) of 3", "gather of 3"]),
        ("select sum(v) over (order by k) as w from t", ["gather of 3"]),
        ("select k from t union all select k from u", ["gather of 5"]),
        ("select distinct s from t", ["shuffle(s) of 3", "gather of 3"]),
        ("select count(distinct v) as n from t", ["shuffle(alias1) of 3", "gather of 3"]),
    ],
)
def test_exchanges_of_a_query(sql: str, expected: list[str]) -> None:
    assert exchanges(graph_of(sql)) == expected


def test_a_small_build_side_is_broadcast_and_a_large_one_shuffled() -> None:
    sql = "select u.v, t.v as w from u join t on u.k = t.k"
    assert exchanges(graph_of(sql)) == ["broadcast of 2", "gather of 3"]
    assert exchanges(graph_of(sql, NO_BROADCAST)) == ["shuffle(k) of 2", "shuffle(k) of 3", "gather of 3"]


def test_a_join_that_emits_build_rows_is_shuffled() -> None:
    sql = "select u.v, t.v as w from u left join t on u.k = t.k"
    assert exchanges(graph_of(sql)) == ["shuffle(k) of 2", "shuffle(k) of 3", "gather of 3"]


def test_interleaved_groups_share_their_shuffles() -> None:
    sql = "select k, count(*) as n from t group by k union all select k, count(*) as n from u group by k"
    assert exchanges(graph_of(sql)) == ["shuffle(k) of 3", "shuffle(k) of 2", "gather of 3"]


def test_every_stage_comes_after_its_inputs() -> None:
    graph = graph_of("select u.s, count(*) as n from u join t on u.k = t.k group by u.s order by n", NO_BROADCAST)
    seen: set[int] = set()
    for stage in graph.stages:
        assert set(stage.inputs) <= seen
        seen.add(stage.output)
    assert set(graph.head.inputs) <= seen


def test_the_head_streams_a_bare_gather() -> None:
    head = graph_of("select k from t").head
    assert head.streams
    assert (head.skip, head.fetch) == (0, None)


def test_the_head_streams_a_limit() -> None:
    graph = graph_of("select k from t limit 4 offset 1")
    assert graph.head.streams
    assert (graph.head.skip, graph.head.fetch) == (1, 4)


def test_the_head_runs_what_needs_all_rows() -> None:
    graph = graph_of("select k from t order by k")
    assert not graph.head.streams
    assert shape(decode(graph.head.plan or b"")) == tree("""
        sort_preserving_merge
          arrow_scan x3
    """)


def test_stages_read_exchange_sources() -> None:
    graph = graph_of("select k, sum(v) as s from t group by k")
    first, second = graph.stages
    assert shape(decode(first.plan)) == tree("""
        repartition x3
          aggregate x3
            memory_scan x3
    """)
    assert shape(decode(second.plan)).splitlines()[-1].strip() == "arrow_scan x3"
    assert (first.mergeable, second.mergeable) == (False, True)


def test_a_limit_is_taken_in_every_task_and_again_above() -> None:
    graph = graph_of("select sum(w) from (select v as w from t limit 3)")
    assert "local_limit" in shape(decode(graph.stages[0].plan))
    assert not graph.stages[0].deterministic


def test_a_union_cannot_be_merged() -> None:
    plain_union = {"datafusion.optimizer.prefer_existing_union": "true"}
    graph = graph_of("select k from t group by k union all select v from u group by v", plain_union)
    assert exchanges(graph) == ["shuffle(k) of 3", "shuffle(v) of 2", "gather of 6"]
    assert not graph.stages[-1].mergeable


def test_one_partition_is_nothing_to_distribute() -> None:
    one = plan("select k from t")
    del one.memory_scan.partitions[1:]
    with pytest.raises(NotDistributableError, match="one partition"):
        distribute(one, SchemaProbe(context()))


def test_a_gather_of_a_gather_is_cut_once() -> None:
    graph = cut(coalesce(coalesce(plan("select k from t"))), SchemaProbe(context()).describe)
    assert exchanges(graph) == ["gather of 3"]


def test_mixed_key_types_are_refused() -> None:
    """The planner casts keys to one type, so the plan has to be made wrong by hand."""
    root = plan("select u.v, t.v as w from u join t on u.s = t.s", NO_BROADCAST)
    probe = SchemaProbe(context())
    right = find(root, "hash_join").hash_join.right.repartition.input
    names = probe.describe(right).arrow.names
    columns = ", ".join("arrow_cast(s, 'Utf8View') as s" if name == "s" else name for name in names)
    right.CopyFrom(plan(f"select {columns} from t"))
    with pytest.raises(NotDistributableError, match=r"have different key types: .*string.* and .*string_view"):
        distribute(root, probe)
