"""Which joins may have their sides swapped, and that nothing else changes then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import Stage, StageGraph
from sparkfusion.plan.swapped_joins import JoinSides, swap_joins
from sparkfusion.plan.wire import copy_of, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import projection
from tests.unit.plan.plans import NO_BROADCAST, context, plan

INNER = "select u.v, t.v as w, t.s from u join t on u.k = t.k and u.v < t.v"
MIRRORED = {
    pb.INNER: pb.INNER,
    pb.LEFT: pb.RIGHT,
    pb.FULL: pb.FULL,
    pb.LEFT_SEMI: pb.RIGHT_SEMI,
    pb.LEFT_ANTI: pb.RIGHT_ANTI,
    pb.LEFT_MARK: pb.RIGHT_MARK,
}
TYPES = {**MIRRORED, **{right: left for left, right in MIRRORED.items()}}


def joining(sql: str, **options: str) -> tuple[StageGraph, Stage]:
    as_written = {**NO_BROADCAST, "datafusion.optimizer.join_reordering": "false", **options}
    graph = distribute(plan(sql, as_written), SchemaProbe(context()))
    found = [stage for stage in graph.stages if len(stage.inputs) == 2]
    return graph, found[0]


def join_of(plan: bytes) -> pb.HashJoin:
    return next(node.hash_join for node in walk(decode(plan)) if kind(node) == "hash_join")


def with_join(stage: Stage, **fields: object) -> bytes:
    root = decode(stage.plan)
    (join,) = [node.hash_join for node in walk(root) if kind(node) == "hash_join"]
    for name, value in fields.items():
        setattr(join, name, value)
    return encode(root)


def always(sides: JoinSides) -> bool:
    return True


def test_every_join_type_has_a_mirror() -> None:
    assert set(TYPES) == set(pb.JoinType.values())


@pytest.mark.parametrize(("type", "mirrored"), TYPES.items(), ids=map(pb.JoinType.Name, TYPES))
def test_a_swapped_join_is_the_mirrored_one(type: int, mirrored: int) -> None:
    graph, stage = joining(INNER)
    plan = with_join(stage, join_type=type)
    made, sides = swap_joins(graph, plan, always)
    assert sides == (JoinSides(1, 2),)
    before, after = join_of(plan), join_of(made)
    assert after.join_type == mirrored
    assert (after.left, after.right) == (before.right, before.left)
    assert [(each.left, each.right) for each in after.on] == [(each.right, each.left) for each in before.on]
    assert [each.side for each in after.filter.column_indices] == [1 - e.side for e in before.filter.column_indices]
    again, sides = swap_joins(graph, made, always)
    assert sides == (JoinSides(2, 1),)
    assert join_of(again) == before


def test_the_columns_of_a_join_stay_in_their_order() -> None:
    """The sides have three columns each: k, v and s."""
    graph, stage = joining("select u.s, t.v as w, u.v, t.k from u join t on u.k = t.k")
    before, after = join_of(stage.plan), join_of(swap_joins(graph, stage.plan, always)[0])
    left = len(graph.exchange(1).column_names)
    right = len(graph.exchange(2).column_names)
    names = [*graph.exchange(1).column_names, *graph.exchange(2).column_names]
    swapped = [*graph.exchange(2).column_names, *graph.exchange(1).column_names]
    assert left + right == len(names)
    assert [swapped[index] for index in after.projection] == [names[index] for index in before.projection]


def test_a_join_without_a_projection_gets_one() -> None:
    graph, stage = joining("select * from u join t on u.k = t.k")
    root = decode(stage.plan)
    next(node.hash_join for node in walk(root) if kind(node) == "hash_join").ClearField("projection")
    after = join_of(swap_joins(graph, encode(root), always)[0])
    assert list(after.projection) == [3, 4, 5, 0, 1, 2]


def test_the_columns_of_projections_and_filters_below_are_counted() -> None:
    graph, stage = joining("select u.v, t.v as w from u join t on u.k = t.k")
    root = decode(stage.plan)
    join = next(node.hash_join for node in walk(root) if kind(node) == "hash_join")
    join.ClearField("projection")
    join.left.CopyFrom(projection(copy_of(join.left), [(name, pb.Expr(column=pb.Column())) for name in "abcd"]))
    kept = pb.PlanNode()
    kept.filter.input.CopyFrom(join.right)
    kept.filter.projection.extend([1])
    join.right.CopyFrom(kept)
    after = join_of(swap_joins(graph, encode(root), always)[0])
    assert list(after.projection) == [1, 2, 3, 4, 0]


def test_only_better_joins_are_swapped() -> None:
    graph, stage = joining(INNER)
    asked: list[JoinSides] = []

    def never(sides: JoinSides) -> bool:
        asked.append(sides)
        return False

    assert swap_joins(graph, stage.plan, never) == (stage.plan, ())
    assert asked == [JoinSides(1, 2)]


@pytest.mark.parametrize("fields", [{"null_aware": True}, {"fetch": 3}, {"partition_mode": pb.COLLECT_LEFT}])
def test_joins_that_stay(fields: dict[str, object]) -> None:
    graph, stage = joining(INNER)
    plan = with_join(stage, **fields)
    assert swap_joins(graph, plan, always) == (plan, ())


def test_a_sorted_probe_side_stays() -> None:
    """A join keeps the order of its probe side, and something above may count on it."""
    graph, stage = joining(INNER)
    root = decode(stage.plan)
    join = next(node.hash_join for node in walk(root) if kind(node) == "hash_join")
    side = pb.PlanNode()
    side.sort.input.CopyFrom(join.right)
    side.sort.fetch = -1
    side.sort.preserve_partitioning = True
    join.right.CopyFrom(side)
    plan = encode(root)
    assert swap_joins(graph, plan, always) == (plan, ())


def test_a_side_that_is_more_than_a_shuffle_stays() -> None:
    graph, stage = joining("select u.v, n from u join (select k, count(*) n from t group by k) t using (k)")
    assert swap_joins(graph, stage.plan, always) == (stage.plan, ())


def test_the_rest_of_the_stage_stays() -> None:
    graph, stage = joining(INNER)
    made, _ = swap_joins(graph, stage.plan, always)
    kinds = [sorted(kind(node) for node in walk(decode(each))) for each in (stage.plan, made)]
    assert kinds[0] == kinds[1]
    assert replace(stage, plan=made).inputs == stage.inputs
