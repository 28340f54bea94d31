"""From DataFusion's plan to a stage graph: gate, rules, cut. The entry point of this package."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.ids import FeedId, TableId
from sparkfusion.plan.build_sides import choose_build_sides
from sparkfusion.plan.cut import cut
from sparkfusion.plan.feed_scans import feed_of
from sparkfusion.plan.first_stages import FirstStages
from sparkfusion.plan.gate import NotDistributableError, check_physical
from sparkfusion.plan.rules import apply_rules
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import PlanNode, copy_of, walk
from sparkfusion.plan.wire.depth import check_depth

ISOLATION_OPTIONS: dict[str, str] = {
    # docs/traps.md#shared-file-queue
    "datafusion.execution.enable_file_stream_work_stealing": "false",
    # docs/traps.md#dynamic-filters
    "datafusion.optimizer.enable_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_topk_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown": "false",
    # docs/traps.md#scalar-subqueries
    "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery": "false",
    # docs/traps.md#round-robin-repartition
    "datafusion.optimizer.enable_round_robin_repartition": "false",
    # docs/traps.md#sorted-partitions
    "datafusion.optimizer.prefer_existing_sort": "false",
    # scans that declare their files' partitioning cannot be split
    "datafusion.optimizer.preserve_file_partitions": "0",
    # docs/traps.md#plans-that-cannot-be-encoded
    "datafusion.optimizer.enable_piecewise_merge_join": "false",
    "datafusion.optimizer.enable_window_topn": "false",
}
"""Options that planner and workers must share for a plan to be safe in isolated tasks."""


def distribute(
    root: PlanNode,
    probe: SchemaProbe,
    small_feeds: Collection[FeedId] = (),
    small_tables: Collection[TableId] = (),
    first: FirstStages | None = None,
) -> StageGraph:
    """Cut a plan into stages, or raise `NotDistributableError` with the reason. The plan is consumed."""
    check_physical(root)

    def is_small(node: PlanNode) -> bool:
        parts = parts_of(node)
        return feed_of(node) in small_feeds or (bool(parts) and parts[0].table in small_tables)

    if small_feeds or any(parts_of(node) for node in walk(root)):
        choose_build_sides(root, is_small, lambda node: len(probe.describe(node).arrow))
    root = apply_rules(root)
    return with_first_stages(lambda plan, policy: cut(plan, probe.describe, policy), root, first)


def with_first_stages(
    make: Callable[[PlanNode, FirstStages | None], StageGraph], root: PlanNode, policy: FirstStages | None
) -> StageGraph:
    """Make stages of a plan with `make`, without stages that run first if they make the plan too deep to decode, or
    impossible to cut."""
    if policy is not None:
        with suppress(NotDistributableError, PlanTooDeepError):
            graph = make(copy_of(root), policy)
            for stage in graph.stages:
                check_depth(stage.plan)
            return graph
    return make(root, None)
