"""A session whose three legs can be told to lie: plain DataFusion behind the methods that `verify` uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import datafusion
import pyarrow as pa

from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import QueryFinished, Subscriber, TaskFinished
from sparkfusion.plan.stage import Distribution, Exchange, ExchangeKind, Head, Stage, StageGraph

Leg = Callable[[Callable[[], pa.Table]], pa.Table]
"""Runs a leg: given a way to run the query on plain DataFusion, an answer."""


def graph(tasks: int = 3) -> StageGraph:
    """One leaf stage gathered by the head."""
    stage = Stage(0, b"", tasks, (), 0, mergeable=False, deterministic=True)
    return StageGraph((stage,), (Exchange(0, ExchangeKind.GATHER, 0, 1, ()),), Head((0,)))


def honest(run: Callable[[], pa.Table]) -> pa.Table:
    return run()


def changed(change: Callable[[pa.Table], pa.Table]) -> Leg:
    return lambda run: change(run())


def giving(data: dict[str, Any]) -> Leg:
    return lambda run: pa.table(data)


def failing(message: str) -> Leg:
    def fail(run: Callable[[], pa.Table]) -> pa.Table:
        raise Exception(message)

    return fail


@dataclass
class FakeSession:
    """`distributed` and `round_trip` may lie; `planned` is what `distribution()` says, `tasks_run` what events say."""

    context: datafusion.SessionContext = field(default_factory=datafusion.SessionContext)
    distributed: Leg = honest
    round_trip: Leg = honest
    planned: Distribution = field(default_factory=lambda: Distribution(graph()))
    tasks_run: int = 3
    config: dict[str, str] = field(default_factory=lambda: {"sparkfusion.slots": "2", "some.secret": "hidden"})
    subscribers: list[Subscriber] = field(default_factory=list)

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> FakeFrame:
        values = None if param_values is None else dict(param_values)
        return FakeFrame(self, self.context.sql(query, param_values=values))

    def subscribe(self, subscriber: Subscriber, /) -> Callable[[], None]:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)

    def register(self, name: str, data: dict[str, Any]) -> None:
        self.context.register_record_batches(name, [pa.table(data).to_batches()])


@dataclass
class FakeFrame:
    session: FakeSession
    frame: datafusion.DataFrame

    def to_datafusion(self) -> datafusion.DataFrame:
        return self.frame

    def only_distributed(self) -> str | None:
        return None

    def round_trip(self) -> pa.Table:
        return self.session.round_trip(self.frame.to_arrow_table)

    def collect(self) -> pa.Table:
        answer = self.session.distributed(self.frame.to_arrow_table)
        for subscriber in self.session.subscribers:
            for task in range(self.session.tasks_run):
                subscriber(TaskFinished("q", TaskKey("q", 0, task), rows=1, bytes=1, seconds=0.0))
            subscriber(QueryFinished("q", rows=answer.num_rows, seconds=0.0))
        return answer

    def distribution(self) -> Distribution:
        return self.session.planned

    def explain_text(self) -> str:
        return "a plan"
