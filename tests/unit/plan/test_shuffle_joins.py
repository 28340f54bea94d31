"""Which shuffle joins may become broadcast joins, and what the stages are then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.plan import shuffle_joins
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.shuffle_joins import broadcast_build_side, find_shuffle_joins
from sparkfusion.plan.stage import ShuffleJoin, Stage, StageGraph
from sparkfusion.plan.wire import decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context, plan, shape, tree

INNER = "select u.v, t.v as w from u join t on u.k = t.k"
SEVERAL = "select u.v, t.v as w from u join (select k, v from t union all select k, v from u) t on u.k = t.k"
MAY_BECOME = {
    "inner": INNER,
    "inner with a filter": "select u.v, t.v as w from u join t on u.k = t.k and u.v < t.v",
    "right": "select u.v, t.v as w from u right join t on u.k = t.k",
    "left, swapped by the planner": "select u.v, t.v as w from t left join u on u.k = t.k",
    "semi": "select v from t where exists (select 1 from u where u.k = t.k)",
    "anti": "select v from t where not exists (select 1 from u where u.k = t.k)",
    "mark": "select v from t where exists (select 1 from u where u.k = t.k) or v = 10",
    "below a partial aggregate": "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v",
    "below a sort": "select u.v, t.v as w from u join t on u.k = t.k order by u.v + t.v",
    "above a sort": "select u.v, t.v as w from u join t on u.k = t.k order by w",
    "below a limit": "select u.v, t.v as w from u join t on u.k = t.k limit 3",
    "below a cross join": "select a.*, x from (select u.v, t.v as w from u join t on u.k = t.k) a, (select 1 as x) b",
}
MUST_STAY = {
    "left": "select u.v, t.v as w from u left join t on u.k = t.k",
    "full": "select u.v, t.v as w from u full join t on u.k = t.k",
    "not in": "select v from t where k not in (select k from u)",
    "an aggregate by the key": "select u.k, count(*) from u join t on u.k = t.k group by u.k",
    "a window over the key": "select sum(t.v) over (partition by t.k) as w from u join t on u.k = t.k",
    "another join of the key": "select u.v from u join t on u.k = t.k left join t as r on r.k = t.k",
    "an aggregate of the probe side": "select u.v, n from u join (select k, count(*) n from t group by k) t using (k)",
    "an aggregate of the build side": "select t.v from t join (select k, max(v) m from u group by k) u using (k)",
    "a union": "select u.v from u join t on u.k = t.k union all select v from t",
    "a sort-merge join": INNER,
    "a join that collects one side": INNER,
}
OPTIONS = {
    "a sort-merge join": {**NO_BROADCAST, "datafusion.optimizer.prefer_hash_join": "false"},
    "a join that collects one side": {},
}


def graph_of(sql: str, options: dict[str, str] | None = None) -> StageGraph:
    return distribute(plan(sql, NO_BROADCAST if options is None else options), SchemaProbe(context()))


def candidates(graph: StageGraph) -> list[Stage]:
    return [stage for stage in graph.stages if stage.shuffle_join is not None]


@pytest.mark.parametrize("sql", MAY_BECOME.values(), ids=MAY_BECOME)
def test_a_join_that_gives_no_build_rows_may_become_a_broadcast_join(sql: str) -> None:
    graph = graph_of(sql)
    (stage,) = candidates(graph)
    assert stage.shuffle_join is not None
    assert [graph.producer_of(stage.shuffle_join.build).task_count, stage.task_count] == [2, 3]


@pytest.mark.parametrize(("name", "sql"), MUST_STAY.items(), ids=MUST_STAY)
def test_a_join_stays_a_shuffle_join(name: str, sql: str) -> None:
    graph = graph_of(sql, OPTIONS.get(name))
    plans = [stage.plan for stage in graph.stages] + [graph.head.plan or b""]
    kinds = {kind(node) for each in plans for node in walk(decode(each))}
    assert kinds & {"hash_join", "sort_merge_join"}
    assert candidates(graph) == []


def test_a_null_aware_join_stays() -> None:
    """The rules gather its probe side; a plan that has a partitioned one is refused here as well."""
    graph = _changed_join(graph_of(INNER), "null_aware", True)
    assert candidates(find_shuffle_joins(graph)) == []


@pytest.mark.parametrize("type", [pb.LEFT, pb.FULL, pb.LEFT_SEMI, pb.LEFT_ANTI, pb.LEFT_MARK])
def test_a_join_that_gives_build_rows_stays(type: int) -> None:
    graph = _changed_join(graph_of(INNER), "join_type", type)
    assert candidates(find_shuffle_joins(graph)) == []


def test_a_probe_side_that_somebody_else_reads_stays() -> None:
    graph = graph_of(INNER)
    (stage,) = candidates(graph)
    assert stage.shuffle_join is not None
    twice = replace(graph, head=replace(graph.head, inputs=(*graph.head.inputs, stage.shuffle_join.probe)))
    assert candidates(find_shuffle_joins(twice)) == []


def test_a_probe_side_whose_rows_may_differ_stays() -> None:
    graph = graph_of(INNER)
    random = graph.with_stage(replace(graph.stage(2), deterministic=False))
    assert candidates(find_shuffle_joins(random)) == []


def test_the_side_that_reads_less_is_likely_the_smaller_one() -> None:
    graph = graph_of(INNER)
    (stage,) = candidates(graph)
    assert stage.shuffle_join == ShuffleJoin(build=1, probe=2, build_first=True)
    small = replace(graph.stage(2), scan_bytes=graph.stage(1).scan_bytes - 1)
    (stage,) = candidates(find_shuffle_joins(graph.with_stage(small)))
    assert stage.shuffle_join == ShuffleJoin(build=1, probe=2, build_first=False)


def test_the_stage_of_the_probe_side_becomes_part_of_the_join() -> None:
    graph = graph_of(MAY_BECOME["below a partial aggregate"])
    made = broadcast_build_side(graph, 3, "because")
    assert [stage.id for stage in made.stages] == [1, 3, 4]
    assert [exchange.id for exchange in made.exchanges] == [1, 3, 4]
    joined = made.stage(3)
    assert shape(decode(joined.plan)) == tree("""
        repartition x3
          aggregate x3
            cooperative x3
              hash_join x3
                coalesce_partitions
                  arrow_scan x3
                memory_scan x3
    """)
    assert (joined.inputs, joined.collects, joined.task_count) == ((1,), (1,), 3)
    assert joined.scan_bytes == graph.stage(2).scan_bytes
    assert joined.shuffle_join is None
    assert joined.decisions == ("because",)
    assert made.stage(4) == graph.stage(4)


def test_the_head_reads_every_task_of_the_probe_side() -> None:
    """The join had three tasks, and its probe side has five."""
    graph = graph_of(f"{SEVERAL} order by w")
    made = broadcast_build_side(graph, 3, "because")
    assert (graph.stage(3).task_count, made.stage(3).task_count) == (3, 5)
    assert made.head.plan is not None
    assert shape(decode(made.head.plan)) == tree("""
        sort_preserving_merge
          arrow_scan x5
    """)


def test_a_reader_that_counts_tasks_keeps_the_join_shuffled() -> None:
    graph = graph_of(f"{SEVERAL} order by w")
    assert graph.head.plan is not None
    source = decode(graph.head.plan).sort_preserving_merge.input
    graph = replace(graph, head=replace(graph.head, plan=encode(source)))
    assert candidates(find_shuffle_joins(graph)) == []


def test_plans_that_are_nested_too_deep_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(plan: bytes) -> None:
        raise PlanTooDeepError("too deep")

    monkeypatch.setattr(shuffle_joins, "check_depth", refuse)
    with pytest.raises(PlanTooDeepError):
        broadcast_build_side(graph_of(INNER), 3, "because")


def _changed_join(graph: StageGraph, field: str, value: object) -> StageGraph:
    """The graph whose join has another value in a field."""
    (stage,) = candidates(graph)
    root = decode(stage.plan)
    (join,) = [node.hash_join for node in walk(root) if kind(node) == "hash_join"]
    setattr(join, field, value)
    return graph.with_stage(replace(stage, plan=encode(root)))
