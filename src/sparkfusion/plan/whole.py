"""A query that is not split: the whole plan is one stage of one task, which runs all its partitions."""

from __future__ import annotations

from collections.abc import Sequence

from sparkfusion.plan.determinism import is_deterministic
from sparkfusion.plan.gate import check_physical
from sparkfusion.plan.rules.yield_above_joins import yield_above_joins
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.plan.wire import PlanNode, encode, partition_count
from sparkfusion.plan.wire.build import coalesce


def keep_whole(root: PlanNode, columns: Sequence[str], partitions: int) -> StageGraph:
    """The stage graph of a plan that one task runs, or raise `NotDistributableError` with the reason.

    DataFusion exchanges rows between the partitions in memory, so rows cross no files and a build side is read once.
    The plan is encoded and decoded like that of any task.

    Args:
        columns: the names of the plan's columns.
        partitions: for how many the plan was made.
    """
    check_physical(root)
    root = yield_above_joins(root)
    plan = encode(coalesce(root) if partition_count(root) > 1 else root)
    stage = Stage(
        id=1,
        plan=plan,
        task_count=1,
        inputs=(),
        output=1,
        mergeable=False,
        deterministic=is_deterministic(root),
        scan_bytes=scan_bytes(root),
        whole=True,
        partitions_per_task=partitions,
    )
    return StageGraph((stage,), (Exchange(1, ExchangeKind.GATHER, 1, 1, tuple(columns)),), Head((1,)))
