"""Which plans give no rows if an exchange has none."""

from __future__ import annotations

import pytest

from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.no_rows import gives_no_rows
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import Stage, StageGraph
from sparkfusion.plan.wire import body, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context, plan

BUILD, PROBE = 1, 2
INNER = "select u.v, t.v as w from u join t on u.k = t.k"
TYPES = {
    pb.INNER: (True, True),
    pb.LEFT: (True, False),
    pb.RIGHT: (False, True),
    pb.FULL: (False, False),
    pb.LEFT_SEMI: (True, True),
    pb.RIGHT_SEMI: (True, True),
    pb.LEFT_ANTI: (True, False),
    pb.RIGHT_ANTI: (False, True),
    pb.LEFT_MARK: (True, False),
    pb.RIGHT_MARK: (False, True),
}
"""For each join type: whether it gives nothing if its left, or its right side has no rows."""


def graph_of(sql: str, **options: str) -> StageGraph:
    return distribute(plan(sql, {**NO_BROADCAST, **options}), SchemaProbe(context()))


def stage_with(graph: StageGraph, name: str) -> Stage:
    return next(stage for stage in graph.stages if any(kind(node) == name for node in walk(decode(stage.plan))))


def test_every_join_type_is_known() -> None:
    assert set(TYPES) == set(pb.JoinType.values())


@pytest.mark.parametrize("name", ["hash_join", "sort_merge_join"])
@pytest.mark.parametrize(("type", "expected"), TYPES.items(), ids=map(pb.JoinType.Name, TYPES))
def test_joins(name: str, type: int, expected: tuple[bool, bool]) -> None:
    prefer = {"datafusion.optimizer.prefer_hash_join": "true" if name == "hash_join" else "false"}
    root = decode(stage_with(graph_of(INNER, **prefer), name).plan)
    for node in walk(root):
        if kind(node) == name:
            body(node).join_type = type
    found = tuple(gives_no_rows(encode(root), frozenset({side})) for side in (BUILD, PROBE))
    assert found == expected
    assert gives_no_rows(encode(root), frozenset({BUILD, PROBE}))
    assert not gives_no_rows(encode(root), frozenset())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select k, count(*) from t group by k", True),
        ("select distinct k from t", True),
        ("select v, sum(v) over (partition by k) from t", True),
        ("select k, s, count(*) from t group by grouping sets ((k), (s))", True),
        ("select count(distinct k) from t", False),
    ],
    ids=["group by", "distinct", "window", "the final step of grouping sets", "below an aggregate of all rows"],
)
def test_what_reads_a_shuffle(sql: str, expected: bool) -> None:
    graph = graph_of(sql)
    (stage,) = [each for each in graph.stages if each.inputs == (1,)]
    assert gives_no_rows(stage.plan, frozenset({1})) is expected


def test_an_aggregate_of_all_rows_gives_a_row() -> None:
    graph = graph_of("select sum(v) from t where v > 1")
    assert graph.head.plan is not None
    assert not gives_no_rows(graph.head.plan, frozenset({1}))


def test_a_partial_aggregate_of_all_rows_gives_a_row() -> None:
    graph = graph_of("select count(*) from u join t on u.k = t.k")
    assert not gives_no_rows(stage_with(graph, "hash_join").plan, frozenset({BUILD, PROBE}))


def test_grouping_sets_may_have_a_group_without_rows() -> None:
    graph = graph_of("select u.s, t.v, count(*) from u join t on u.k = t.k group by grouping sets ((u.s), (t.v), ())")
    assert not gives_no_rows(stage_with(graph, "hash_join").plan, frozenset({BUILD, PROBE}))


def test_a_union_needs_all_its_inputs_to_be_empty() -> None:
    graph = graph_of("select k from t group by k union all select v from u group by v")
    (union,) = [stage for stage in graph.stages if len(stage.inputs) == 2]
    assert {kind(node) for node in walk(decode(union.plan))} & {"union", "interleave"}
    assert gives_no_rows(union.plan, frozenset(union.inputs))
    assert not any(gives_no_rows(union.plan, frozenset({each})) for each in union.inputs)


def test_a_cross_join_needs_both_sides() -> None:
    graph = graph_of("select a.k, b.v from (select k from t group by k) a, (select v from u group by v) b")
    cross = stage_with(graph, "cross_join")
    assert [gives_no_rows(cross.plan, frozenset({each})) for each in cross.inputs] == [True, True]


def test_a_scan_of_files_may_give_rows() -> None:
    graph = graph_of(INNER)
    assert not gives_no_rows(graph.stage(1).plan, frozenset({1, 2, 3}))
