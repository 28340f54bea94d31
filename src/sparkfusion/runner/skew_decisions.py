"""Whether partitions of a shuffle that are much larger than the others are split: decided when their reader starts.

Each task of a split partition reads what some of the producer tasks wrote, and everything that the partition has of the
other shuffles. See docs/adr/0028-split-skip-and-swap-from-exact-sizes.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from sparkfusion.config import ALWAYS
from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.plan.isolate import Partitions
from sparkfusion.plan.skewed_joins import NotSplittableError, find_split_side
from sparkfusion.plan.stage import Stage
from sparkfusion.plan.task_counts import with_groups
from sparkfusion.runner.adapt import (
    keeps_apart,
    layout_of,
    merge_small_partitions,
    one_task_per_partition,
    shuffle_sizes,
)
from sparkfusion.runner.query_state import Policy, Portion, QueryState, StageState

_FACTOR = 5
"""A partition counts as large from this many times the median size on."""
_SHOWN = 8


@dataclass(frozen=True)
class SkewDecision:
    """What was decided about large partitions that a stage reads."""

    stage: StageId
    reason: str
    split: bool


@dataclass(frozen=True)
class Skew:
    """Partitions of a shuffle that are much larger than the others."""

    exchange: ExchangeId
    partitions: Partitions
    largest: int
    median: int


def begin_stage(state: QueryState, stage: Stage) -> tuple[QueryState, tuple[SkewDecision, ...]]:
    """The state in which a stage whose inputs are complete has tasks, and what was decided about its partitions."""
    sizes = shuffle_sizes(state, stage) if state.policy.skew_bytes and stage.task_count > 1 else {}
    found = [skew for exchange in sizes if (skew := find_skew(exchange, sizes[exchange], state.policy)) is not None]
    if not found:
        return _with_tasks(state, stage, layout_of(state, stage)), ()
    skew = max(found, key=lambda each: each.largest)
    try:
        if state.policy.unsplit:
            raise NotSplittableError(state.policy.unsplit)
        probe = find_split_side(state.graph, stage)
        skew = _only_of(probe, found)
        portions = _split(state, skew, sizes)
    except NotSplittableError as refused:
        reason = f"not split: {_describe(state, skew)}, but {refused}"
        state = _with_reason(state, stage, reason)
        return _with_tasks(state, stage, layout_of(state, stage)), (SkewDecision(stage.id, reason, False),)
    readers = sum(map(len, portions.values()))
    reason = f"split: {_describe(state, skew)}, divided among {readers} tasks"
    layout, of_tasks = _divide(portions, [sum(each) for each in zip(*sizes.values(), strict=True)], state.policy)
    state = _with_reason(state, stage, reason)
    state = replace(state, graph=with_groups(state.graph, stage.output, len(layout)))
    return _with_tasks(state, stage, layout, of_tasks), (SkewDecision(stage.id, reason, True),)


def find_skew(exchange: ExchangeId, sizes: Sequence[int], policy: Policy) -> Skew | None:
    """The partitions that are much larger than the others; all with rows, if splitting is forced."""
    middle = median_low(sizes)
    least = 1 if policy.skew_bytes == ALWAYS else max(policy.skew_bytes, _FACTOR * middle + 1)
    large = tuple(partition for partition, size in enumerate(sizes) if size >= least)
    return Skew(exchange, large, max(sizes), middle) if large else None


def _only_of(probe: ExchangeId, found: Sequence[Skew]) -> Skew:
    for skew in found:
        if skew.exchange == probe:
            return skew
    raise NotSplittableError("these rows are not the probe side of the join")


def _split(state: QueryState, skew: Skew, sizes: Mapping[ExchangeId, Sequence[int]]) -> dict[int, tuple[Portion, ...]]:
    """The portions of each partition that is split: neighbouring producer tasks up to a number of bytes."""
    producer = state.stage(state.graph.exchange(skew.exchange).producer)
    found: dict[int, tuple[Portion, ...]] = {}
    for partition in skew.partitions:
        written = [0] * len(producer.tasks)
        for task, file in producer.files_by_partition.get(partition, ()):
            written[task] += file.bytes
        others = sum(size[partition] for exchange, size in sizes.items() if exchange != skew.exchange)
        groups = merge_small_partitions(written, _target(skew, others, state.policy))
        if len(groups) > 1:
            found[partition] = tuple(Portion(skew.exchange, group[0], group[-1] + 1) for group in groups)
    if not found:
        raise NotSplittableError("too few tasks wrote it to divide their output")
    return found


def _target(skew: Skew, others: int, policy: Policy) -> int:
    """How many bytes a task should read of a split partition: like a usual partition, and not less than the rows of
    the other sides, which every task reads."""
    if policy.skew_bytes == ALWAYS:
        return 1
    return max(policy.bytes_per_partition, skew.median, others)


def _divide(
    portions: Mapping[int, Sequence[Portion]], sizes: Sequence[int], policy: Policy
) -> tuple[tuple[Partitions, ...], tuple[Portion | None, ...]]:
    """The partitions of each task, and its portion if it reads only one. Small partitions between split ones are
    merged."""
    layout: list[Partitions] = []
    of_tasks: list[Portion | None] = []
    for run in _runs(len(sizes), portions):
        if run[0] in portions:
            groups: tuple[Partitions, ...] = (run,) * len(portions[run[0]])
            of_tasks += portions[run[0]]
        else:
            merged = merge_small_partitions([sizes[each] for each in run], policy.bytes_per_partition)
            together = merged if policy.merge_small_partitions else one_task_per_partition(len(run))
            groups = tuple(tuple(run[place] for place in group) for group in together)
            of_tasks += [None] * len(groups)
        layout += groups
    return tuple(layout), tuple(of_tasks)


def _runs(count: int, split: Mapping[int, object]) -> list[Partitions]:
    """All partitions in order: each split one by itself, and those between two of them together.

    >>> _runs(5, {2: ...})
    [(0, 1), (2,), (3, 4)]
    """
    runs: list[Partitions] = []
    for partition in range(count):
        if runs and partition not in split and runs[-1][-1] not in split:
            runs[-1] += (partition,)
        else:
            runs.append((partition,))
    return runs


def _describe(state: QueryState, skew: Skew) -> str:
    producer = state.graph.exchange(skew.exchange).producer
    numbers = ", ".join(map(str, skew.partitions[:_SHOWN])) + (", …" if len(skew.partitions) > _SHOWN else "")
    noun = "partition" if len(skew.partitions) == 1 else "partitions"
    return f"{noun} {numbers} of stage {producer} (largest {skew.largest:,} bytes, median {skew.median:,})"


def _with_reason(state: QueryState, stage: Stage, reason: str) -> QueryState:
    decided = replace(stage, decisions=(*stage.decisions, reason))
    return replace(state, graph=state.graph.with_stage(decided))


def _with_tasks(
    state: QueryState, stage: Stage, layout: tuple[Partitions, ...], portions: tuple[Portion | None, ...] = ()
) -> QueryState:
    apart = not portions and keeps_apart(stage, layout)
    begun = StageState.of(layout, apart=apart, portions=portions)
    return replace(state, stages={**state.stages, stage.id: begun})
