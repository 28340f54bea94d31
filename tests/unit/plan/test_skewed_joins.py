"""Which shuffles may be split among several tasks, and why others must not be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.plan import skewed_joins
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.shuffle_joins import broadcast_build_side
from sparkfusion.plan.skewed_joins import NotSplittableError, find_split_side
from sparkfusion.plan.stage import ExchangeKind, Stage, StageGraph
from sparkfusion.plan.wire import decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context, plan

INNER = "select u.v, t.v as w from u join t on u.k = t.k"
TWO_JOINS = "select r.v, w from u as r join (select t.k, t.v as w from u join t on u.k = t.k) x on r.k = x.k"
MAY_BE_SPLIT = {
    "inner": INNER,
    "inner with a filter": "select u.v, t.v as w from u join t on u.k = t.k and u.v < t.v",
    "right": "select u.v, t.v as w from u right join t on u.k = t.k",
    "below a partial aggregate": "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v",
    "below an aggregate of all rows": "select count(*), sum(t.v) from u join t on u.k = t.k",
    "below a sort": "select u.v, t.v as w from u join t on u.k = t.k order by u.v + t.v",
    "below a limit": "select u.v, t.v as w from u join t on u.k = t.k limit 3",
    "below a cross join": "select a.*, x from (select u.v, t.v as w from u join t on u.k = t.k) a, (select 1 as x) b",
    "below another join of the key": TWO_JOINS,
}
SWAPPED_BY_THE_PLANNER = {
    "left": "select u.v, t.v as w from t left join u on u.k = t.k",
    "semi": "select v from t where exists (select 1 from u where u.k = t.k)",
    "anti": "select v from t where not exists (select 1 from u where u.k = t.k)",
    "mark": "select v from t where exists (select 1 from u where u.k = t.k) or v = 10",
}
MUST_STAY = {
    "left": (
        "select u.v, t.v as w from u left join t on u.k = t.k",
        "this join type checks each build-side row against all probe rows",
    ),
    "full": (
        "select u.v, t.v as w from u full join t on u.k = t.k",
        "this join type checks each build-side row against all probe rows",
    ),
    "an aggregate by the key": (
        "select u.k, count(*) from u join t on u.k = t.k group by u.k",
        "the aggregate needs all rows of a key",
    ),
    "a window over the key": (
        "select sum(t.v) over (partition by t.k) as w from u join t on u.k = t.k",
        "the window needs all rows of a key",
    ),
    "a left join above": (
        "select u.v from u join t on u.k = t.k full join t as r on r.k = t.k",
        "this join type checks each build-side row against all probe rows",
    ),
    "an aggregate of the probe side": (
        "select u.v, n from u join (select k, count(*) n from t group by k) t using (k)",
        "the probe side of the join is not only a shuffle: aggregate",
    ),
    "an aggregate of the build side": (
        "select t.v from (select k, max(v) m from u group by k) u join t using (k)",
        "the build side of the join is not only a shuffle: aggregate",
    ),
    "no join": ("select k, count(*) from t group by k", "the aggregate needs all rows of a key"),
}


def graph_of(sql: str, *, swaps: bool = False) -> StageGraph:
    """The stages of a query. Unless the planner swaps them, joins have the sides that are written there."""
    options = {**NO_BROADCAST, "datafusion.optimizer.join_reordering": str(swaps).lower()}
    return distribute(plan(sql, options), SchemaProbe(context()))


def readers(graph: StageGraph) -> list[Stage]:
    """The stages that read shuffles and have several tasks."""
    return [
        stage
        for stage in graph.stages
        if stage.task_count > 1 and any(graph.exchange(each).kind is ExchangeKind.SHUFFLE for each in stage.inputs)
    ]


def joining(graph: StageGraph) -> Stage:
    (found,) = [each for each in graph.stages if any(kind(node) == "hash_join" for node in walk(decode(each.plan)))]
    return found


def changed_join(graph: StageGraph, field: str, value: object) -> StageGraph:
    stage = joining(graph)
    root = decode(stage.plan)
    for node in walk(root):
        if kind(node) == "hash_join":
            setattr(node.hash_join, field, value)
    return graph.with_stage(replace(stage, plan=encode(root)))


@pytest.mark.parametrize("sql", MAY_BE_SPLIT.values(), ids=MAY_BE_SPLIT)
def test_the_probe_side_of_a_join_may_be_split(sql: str) -> None:
    graph = graph_of(sql)
    assert graph.producer_of(find_split_side(graph, readers(graph)[0])).task_count == 3


@pytest.mark.parametrize("sql", SWAPPED_BY_THE_PLANNER.values(), ids=SWAPPED_BY_THE_PLANNER)
def test_the_large_side_is_mostly_the_probe_side(sql: str) -> None:
    graph = graph_of(sql, swaps=True)
    assert graph.producer_of(find_split_side(graph, readers(graph)[0])).task_count == 3


@pytest.mark.parametrize(("sql", "reason"), MUST_STAY.values(), ids=MUST_STAY)
def test_a_stage_that_needs_whole_partitions_keeps_them(sql: str, reason: str) -> None:
    graph = graph_of(sql)
    with pytest.raises(NotSplittableError, match=reason):
        find_split_side(graph, readers(graph)[0])


@pytest.mark.parametrize("type", [pb.LEFT, pb.FULL, pb.LEFT_SEMI, pb.LEFT_ANTI, pb.LEFT_MARK])
def test_a_join_that_gives_build_rows_is_not_split(type: int) -> None:
    graph = changed_join(graph_of(INNER), "join_type", type)
    with pytest.raises(NotSplittableError, match="this join type checks each build-side row against all probe rows"):
        find_split_side(graph, joining(graph))


@pytest.mark.parametrize("type", [pb.INNER, pb.RIGHT, pb.RIGHT_SEMI, pb.RIGHT_ANTI, pb.RIGHT_MARK])
def test_a_join_whose_rows_come_from_one_probe_row_each_may_be_split(type: int) -> None:
    graph = changed_join(graph_of(INNER), "join_type", type)
    assert find_split_side(graph, joining(graph)) == 2


def test_a_null_aware_join_is_not_split() -> None:
    graph = changed_join(graph_of(INNER), "null_aware", True)
    with pytest.raises(NotSplittableError, match="NOT IN"):
        find_split_side(graph, joining(graph))


def test_a_build_side_that_may_differ_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Volatile functions are below the shuffle in every plan that DataFusion makes of SQL today."""
    graph = graph_of(INNER)
    monkeypatch.setattr(skewed_joins, "is_volatile", lambda node: True)
    with pytest.raises(NotSplittableError, match="the build side contains a volatile expression"):
        find_split_side(graph, joining(graph))


def test_a_collected_join_above_that_gives_build_rows_is_not_split() -> None:
    graph = graph_of(MAY_BE_SPLIT["below another join of the key"])
    stage = readers(graph)[0]
    root = decode(stage.plan)
    (above, _) = [node.hash_join for node in walk(root) if kind(node) == "hash_join"]
    above.partition_mode, above.join_type = pb.COLLECT_LEFT, pb.LEFT
    with pytest.raises(NotSplittableError, match="a join above checks each build-side row against all probe rows"):
        find_split_side(graph, replace(stage, plan=encode(root)))


def test_a_limit_below_the_join_is_not_split() -> None:
    graph = graph_of(TWO_JOINS)
    stage = readers(graph)[0]
    root = decode(stage.plan)
    (_, below) = [node.hash_join for node in walk(root) if kind(node) == "hash_join"]
    below.fetch = 3
    with pytest.raises(NotSplittableError, match="the probe side of the join is not only a shuffle: hash join"):
        find_split_side(graph, replace(stage, plan=encode(root)))


def test_rows_that_the_stage_reads_twice_are_not_split() -> None:
    graph = graph_of(INNER)
    stage = joining(graph)
    root = decode(stage.plan)
    (join,) = [node.hash_join for node in walk(root) if kind(node) == "hash_join"]
    join.left.CopyFrom(join.right)
    with pytest.raises(NotSplittableError, match="reads these rows twice"):
        find_split_side(graph, replace(stage, plan=encode(root)))


def test_a_stage_that_reads_files_too_is_not_split() -> None:
    graph = graph_of(INNER)
    with pytest.raises(NotSplittableError, match="reads something that is not a shuffle"):
        find_split_side(graph, replace(joining(graph), mergeable=False))


def test_readers_that_count_tasks_keep_it_whole() -> None:
    graph = graph_of(INNER)
    stage = joining(graph)
    forward = [
        replace(each, kind=ExchangeKind.FORWARD) if each.id == stage.output else each for each in graph.exchanges
    ]
    with pytest.raises(NotSplittableError, match="a later stage needs exactly the planned number"):
        find_split_side(replace(graph, exchanges=tuple(forward)), stage)


def test_rows_of_a_feeds_task_stay_together() -> None:
    graph = graph_of(INNER)
    stage = joining(graph)
    forward = [replace(each, kind=ExchangeKind.FORWARD) if each.id == 1 else each for each in graph.exchanges]
    with pytest.raises(NotSplittableError, match="one task must see all rows of its feed"):
        find_split_side(replace(graph, exchanges=tuple(forward)), stage)


def test_the_probe_side_of_a_broadcast_join_is_found_below_it() -> None:
    """A second join, decided as a broadcast join, reads the shuffle join's rows without a shuffle."""
    graph = graph_of(
        "select w.s, count(*) from u as w join (select t.v from u join t on u.k = t.k) x on w.v = x.v group by w.s"
    )
    (first, second) = [stage for stage in graph.stages if stage.shuffle_join is not None]
    assert first.shuffle_join is not None
    assert second.shuffle_join is not None
    assert second.shuffle_join.probe == first.output
    made = broadcast_build_side(graph, second.id, "because")
    assert find_split_side(made, made.stage(second.id)) == first.shuffle_join.probe
