"""Which partition a row is in, its order there, and how many there are."""

from __future__ import annotations

from typing import Any

import pytest

import sparkfusion.plan.cut as cut_module
import sparkfusion.plan.isolate as isolate_module
from sparkfusion.plan.sources import exchange_source
from sparkfusion.plan.wire import PlanNode, children, partition_count
from sparkfusion.verify import Outcome, assert_distributed_eq, verify_query
from tests.behaviour.traps.conftest import Connected, graph_of, kinds_in

WRONG = (Outcome.WRONG_ANSWER, Outcome.WIRE_LOSS, Outcome.ERROR_MISMATCH)
UNION = "select k, v from facts union all select k, v from events union all select k, v from single"
INTERLEAVE = (
    "select k, count(*) as n from facts where v > 3 group by k "
    "union all select k, count(*) as n from events where v > 3 group by k"
)


@pytest.mark.parametrize("target_partitions", [2, 5, 7])
def test_union_partitions_are_added_up(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, UNION)
    assert_distributed_eq(session, INTERLEAVE)
    assert "interleave" in kinds_in(graph_of(session.sql(INTERLEAVE)))


def test_union_partitions_without_handling_differ(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    def same_partition_of_every_child(node: PlanNode, partitions: tuple[int, ...]) -> None:
        for child in children(node):
            isolate_module.restrict(child, (partitions[0] % partition_count(child),))
        isolate_module._restrict_merge(node)

    def first_child_only(node: PlanNode, partitions: tuple[int, ...]) -> None:
        first = children(node)[0]
        isolate_module.restrict(first, partitions)
        node.CopyFrom(first)

    monkeypatch.setattr(isolate_module, "_restrict_union", same_partition_of_every_child)
    monkeypatch.setattr(isolate_module, "_restrict_interleave", first_child_only)
    assert verify_query(connected(), UNION).outcome in WRONG
    assert verify_query(connected(), INTERLEAVE).outcome in WRONG


SORTED = "select v, k from facts order by k, v"


@pytest.mark.parametrize("target_partitions", [2, 4, 7])
def test_sorted_partitions_stay_apart(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, SORTED)
    assert session.sql(SORTED).collect() == session.sql(SORTED).to_datafusion().to_arrow_table()


def test_sorted_partitions_without_handling_lose_their_order(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = exchange_source

    def together(*arguments: Any) -> PlanNode:
        made = apart(*arguments)
        conf = made.arrow_scan.base_conf
        placeholders = [file for group in conf.file_groups for file in group.files]
        del conf.file_groups[:]
        conf.file_groups.add().files.extend(placeholders)
        return made

    monkeypatch.setattr(cut_module, "exchange_source", together)
    assert verify_query(connected(), SORTED).outcome is Outcome.WRONG_ANSWER


def test_placeholder_and_empty_partitions_are_counted(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select 1 as k union all select 2 union all select k from facts")
    assert_distributed_eq(
        session, "select k from facts union all select 2 as k union all select k from events where v < 9"
    )
    assert_distributed_eq(session, "select f.k, q.n from facts f cross join (select 7 as n) q")
    assert_distributed_eq(session, "select f.k from facts f left join (select 1 as k where false) q on q.k = f.k")


def test_zero_column_frames_keep_their_row_count(connected: Connected) -> None:
    session = connected()
    nothing = session.sql("select v from facts where v > 10").select()
    assert nothing.distribution().distributed
    assert nothing.collect().num_rows == nothing.to_datafusion().to_arrow_table().num_rows == 196
    assert_distributed_eq(session, "select count(*) as n from facts f cross join events e where f.v > 10 and e.v > 10")
    assert_distributed_eq(session, "select 1 as one from facts f cross join (select k from events where v > 10) e")
