"""From DataFusion's plan to a stage graph: gate, rules, cut. The one entry to this package for whoever plans."""

from __future__ import annotations

from collections.abc import Collection

from sparkfusion.plan.build_sides import choose_build_sides
from sparkfusion.plan.cut import cut
from sparkfusion.plan.feeds import FeedId, feed_of
from sparkfusion.plan.gate import check_physical
from sparkfusion.plan.rules import apply_rules
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.tables import TableId, parts_of
from sparkfusion.plan.wire import PlanNode, walk

ISOLATION_OPTIONS: dict[str, str] = {
    # trap 1: sibling partitions of one scan share a queue of files
    "datafusion.execution.enable_file_stream_work_stealing": "false",
    # trap 2: every partition of a hash join waits for its siblings' bounds
    "datafusion.optimizer.enable_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_topk_dynamic_filter_pushdown": "false",
    "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown": "false",
    # trap 7: its result lives in the process that ran it
    "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery": "false",
    # trap 10
    "datafusion.optimizer.enable_round_robin_repartition": "false",
    # trap 13: no repartition that merges sorted inputs
    "datafusion.optimizer.prefer_existing_sort": "false",
    # scans that declare their files' partitioning cannot be split
    "datafusion.optimizer.preserve_file_partitions": "0",
    # trap 15: these cannot be encoded
    "datafusion.optimizer.enable_piecewise_merge_join": "false",
    "datafusion.optimizer.enable_window_topn": "false",
}
"""Options that planner and workers must share for a plan to be safe in isolated tasks."""


def distribute(
    root: PlanNode,
    probe: SchemaProbe,
    small_feeds: Collection[FeedId] = (),
    small_tables: Collection[TableId] = (),
) -> StageGraph:
    """Cut a plan into stages, or raise `NotDistributableError` with the reason. The plan is consumed."""
    check_physical(root)

    def is_small(node: PlanNode) -> bool:
        parts = parts_of(node)
        return feed_of(node) in small_feeds or (bool(parts) and parts[0].table in small_tables)

    if small_feeds or any(parts_of(node) for node in walk(root)):
        choose_build_sides(root, is_small, lambda node: len(probe.describe(node).arrow))
    return cut(apply_rules(root), probe.describe)
