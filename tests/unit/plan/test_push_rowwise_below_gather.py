from __future__ import annotations

from sparkfusion.plan.rules.push_rowwise_below_gather import push_rowwise_below_gather
from sparkfusion.plan.wire import PlanNode, copy_of
from sparkfusion.plan.wire.build import coalesce
from tests.unit.plan.plans import find, plan, shape, tree


def rowwise_over_merge(*, fetch: int | None = None) -> PlanNode:
    """projection, filter, merge: the plan that DataFusion makes below a limit."""
    root = copy_of(find(plan("select v + 1 as w from t where k > 0"), "projection"))
    scan = find(root, "memory_scan")
    scan.CopyFrom(coalesce(scan))
    if fetch is not None:
        scan.coalesce_partitions.fetch = fetch
    return root


def test_projections_and_filters_go_below_the_merge() -> None:
    before = rowwise_over_merge()
    assert shape(before) == tree("""
        projection
          filter
            coalesce_partitions
              memory_scan x3
    """)
    assert shape(push_rowwise_below_gather(before)) == tree("""
        coalesce_partitions
          projection x3
            filter x3
              memory_scan x3
    """)


def test_a_filter_stays_above_a_limit() -> None:
    before = rowwise_over_merge(fetch=5)
    assert shape(push_rowwise_below_gather(copy_of(before))) == shape(before)


def test_a_projection_goes_below_a_limit_that_stays_in_the_merge() -> None:
    before = rowwise_over_merge()
    merge = find(before, "coalesce_partitions")
    before.projection.input.CopyFrom(copy_of(merge))
    before.projection.input.coalesce_partitions.fetch = 5
    after = push_rowwise_below_gather(before)
    assert shape(after) == tree("""
        coalesce_partitions
          projection x3
            memory_scan x3
    """)
    assert after.coalesce_partitions.fetch == 5


def test_a_merge_of_one_partition_stays() -> None:
    before = rowwise_over_merge()
    del find(before, "memory_scan").memory_scan.partitions[1:]
    assert shape(push_rowwise_below_gather(copy_of(before))) == shape(before)
