"""Find the shuffles that hold the groups of exchanges which a task reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.runner.spark.rows import RddPartitions, Shuffled
from sparkfusion.runner.spark.spark_task import ProducerAttempt, RowInput


@dataclass(frozen=True)
class Output:
    """Where Spark holds the output of one task. `copied`: its frames are in files of this machine, too."""

    shuffled: Shuffled
    source: ProducerAttempt
    copied: bool = False


def wire(
    graph: StageGraph,
    groups: Iterable[tuple[ExchangeId, int]],
    outputs_of: Callable[[StageId], Mapping[int, Output]],
) -> tuple[tuple[RowInput, ...], list[RddPartitions]]:
    """The inputs that the task expects, and the partitions of shuffles to read them from, given outputs by task."""
    wanted: dict[ExchangeId, list[int]] = defaultdict(list)
    for exchange_id, group in groups:
        wanted[exchange_id].append(group)
    inputs, pieces = [], []
    for exchange_id, numbers in wanted.items():
        exchange = graph.exchange(exchange_id)
        shuffled = exchange.kind is ExchangeKind.SHUFFLE
        outputs = [o for task, o in sorted(outputs_of(exchange.producer).items()) if shuffled or task in numbers]
        inputs.append(
            RowInput(
                exchange=exchange_id,
                producer=exchange.producer,
                shuffled=shuffled,
                repeatable=graph.stage(exchange.producer).deterministic,
                groups=tuple(sorted(numbers)),
                sources=tuple(output.source for output in outputs),
            )
        )
        read = tuple(sorted(numbers)) if shuffled else (0,)
        distinct = {output.shuffled.shuffle_id: output.shuffled for output in outputs}
        pieces += [RddPartitions(each, read) for each in distinct.values()]
    return tuple(inputs), pieces
