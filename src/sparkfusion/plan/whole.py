"""A query that is not split: the whole plan is one stage of one task, which runs all its partitions."""

from __future__ import annotations

from collections.abc import Sequence

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.determinism import is_deterministic
from sparkfusion.plan.distribute import with_first_stages
from sparkfusion.plan.first_stages import FirstStages, make_first_stages
from sparkfusion.plan.gate import check_physical
from sparkfusion.plan.rules.yield_above_joins import yield_above_joins
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.sources import exchange_source, exchanges_read
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, KeySet, Stage, StageGraph
from sparkfusion.plan.wire import PlanNode, encode, partition_count
from sparkfusion.plan.wire.build import coalesce


def keep_whole(
    root: PlanNode, columns: Sequence[str], partitions: int, probe: SchemaProbe, first: FirstStages | None = None
) -> StageGraph:
    """The stage graph of a plan that one task runs, or raise `NotDistributableError` with the reason.

    DataFusion exchanges rows between the partitions in memory, so no frames are written and a build side is read once.
    The plan is encoded and decoded like that of any task. Parts that run first, such as key sets, are stages of one
    task.

    Args:
        columns: the names of the plan's columns.
        partitions: the number of partitions that the plan was made for.
    """
    check_physical(root)

    def make(plan: PlanNode, policy: FirstStages | None) -> StageGraph:
        maker = _Maker(probe, partitions)
        if policy is not None:
            make_first_stages(plan, lambda node: probe.describe(node).arrow, maker.make_stage, policy)
        last = maker.add(plan, columns)
        for stage in maker.stages:
            probe.check_plan(stage.plan)
        return StageGraph(tuple(maker.stages), tuple(maker.exchanges), Head((last,)))

    return with_first_stages(make, yield_above_joins(root), first)


class _Maker:
    """Collects the stages of one graph."""

    def __init__(self, probe: SchemaProbe, partitions: int) -> None:
        self._probe = probe
        self._partitions = partitions
        self.stages: list[Stage] = []
        self.exchanges: list[Exchange] = []

    def add(
        self,
        root: PlanNode,
        columns: Sequence[str],
        key_set: KeySet | None = None,
        decisions: tuple[str, ...] = (),
    ) -> ExchangeId:
        """Make the plan a stage of one task."""
        number = len(self.stages) + 1
        self.exchanges.append(Exchange(number, ExchangeKind.GATHER, number, 1, tuple(columns), key_set=key_set))
        self.stages.append(
            Stage(
                id=number,
                plan=encode(coalesce(root) if partition_count(root) > 1 else root),
                task_count=1,
                inputs=exchanges_read(root),
                output=number,
                mergeable=False,
                deterministic=is_deterministic(root),
                scan_bytes=scan_bytes(root),
                whole=True,
                partitions_per_task=self._partitions,
                decisions=decisions,
            )
        )
        return number

    def make_stage(self, plan: PlanNode, *, key_set: KeySet | None = None, decisions: tuple[str, ...] = ()) -> PlanNode:
        schema = self._probe.describe(plan)
        exchange = self.add(plan, schema.arrow.names, key_set, decisions)
        return exchange_source(exchange, 1, schema.encoded, len(schema.arrow), schema.computed)
