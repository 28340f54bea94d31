"""A cluster without processes: the coordinator's own state machine, and workers that only take simulated time."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from sparkfusion.errors import ExternalError, WorkerLostError
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import SourceFile, StageId, TaskKey
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.runner.machine import (
    Command,
    Discard,
    End,
    Launch,
    MachineEvent,
    OutputLost,
    RunTasks,
    Started,
    TaskErrored,
    TaskSucceeded,
    transition,
)
from sparkfusion.runner.query_state import HEAD, Policy, QueryState

_FILE_BYTES = 4 << 20


def chain_of_shuffles(stages: int, tasks: int) -> StageGraph:
    """Stages that each read a shuffle of the one before."""
    made = tuple(
        Stage(number, b"", tasks, (number - 1,) if number > 1 else (), number, mergeable=number > 1, deterministic=True)
        for number in range(1, stages + 1)
    )
    exchanges = tuple(
        Exchange(stage.id, ExchangeKind.SHUFFLE, stage.id, tasks, ())
        if stage.id < stages
        else Exchange(stage.id, ExchangeKind.GATHER, stage.id, 1, ())
        for stage in made
    )
    return StageGraph(made, exchanges, Head((stages,), b""))


@dataclass
class Outcome:
    """What happened in a simulated query. `sources` counts the input files that tasks were told to read."""

    ended: str = ""
    seconds: float = 0.0
    attempts: int = 0
    failures: int = 0
    lost_workers: int = 0
    sources: int = 0
    committed: dict[tuple[StageId, int], TaskKey] = field(default_factory=dict)


class SimulatedCluster:
    """Runs one query on workers of one slot each.

    Args:
        failing: the share of attempts that fail.
        losses: how many workers are lost on the way, with all that they hold. A new one takes their place.
        files: how many partitions each task of a shuffle writes rows for.
    """

    def __init__(
        self, graph: StageGraph, workers: int, *, failing: float = 0.0, losses: int = 0, files: int = 10, seed: int = 1
    ) -> None:
        self._state = QueryState("simulated", graph, Policy())
        self._failing = failing
        self._losses = losses
        self._files = files
        self._random = random.Random(seed)
        self._free = [*range(workers)]
        self._waiting: deque[Launch] = deque()
        self._running: dict[TaskKey, int] = {}
        self._due: list[tuple[float, TaskKey]] = []
        self._held: dict[TaskKey, int] = {}
        self._outcome = Outcome()

    def run(self) -> Outcome:
        """Run the query to its end, and say what happened."""
        outcome = self._outcome
        turn = self._state.graph.task_count // (self._losses + 1)
        self._tell(Started())
        while not outcome.ended:
            outcome.seconds, key = heapq.heappop(self._due)
            worker = self._running.pop(key, None)
            if worker is None:
                continue  # it was discarded, or its worker is lost
            self._free.append(worker)
            self._tell(self._end_of(key, worker))
            if outcome.lost_workers < self._losses and len(outcome.committed) >= turn * (outcome.lost_workers + 1):
                self._lose(worker)
        return outcome

    def _end_of(self, key: TaskKey, worker: int) -> MachineEvent:
        self._outcome.attempts += 1
        if self._random.random() < self._failing:
            self._outcome.failures += 1
            return TaskErrored(key, ExternalError("simulated"))
        self._outcome.committed[key.stage, key.task] = key
        self._held[key] = worker
        return TaskSucceeded(key, Manifest(key, tuple(self._files_of(key))))

    def _files_of(self, key: TaskKey) -> Iterator[FrameFile]:
        if key.stage == HEAD:
            return
        partitions = self._state.graph.exchange(key.stage).partitions
        for number in range(min(self._files, partitions)):
            yield FrameFile(str(key), (key.task + number) % partitions, 1, _FILE_BYTES)

    def _lose(self, worker: int) -> None:
        """Take a worker away. Consumers that have not ended will miss what it held."""
        self._outcome.lost_workers += 1
        for key in [key for key, place in self._running.items() if place == worker]:
            del self._running[key]
            self._free.append(worker)
            self._tell(TaskErrored(key, WorkerLostError("simulated")))
        for key in [key for key, place in self._held.items() if place == worker]:
            del self._held[key]
            if not self._state.stage(key.stage + 1).done:
                self._tell(OutputLost(key.stage, key.task, key.attempt))

    def _tell(self, event: MachineEvent) -> None:
        self._state, commands = transition(self._state, event)
        for command in commands:
            self._carry_out(command)
        while self._waiting and self._free:
            launch = self._waiting.popleft()
            self._running[launch.key] = self._free.pop()
            heapq.heappush(self._due, (self._outcome.seconds + self._random.uniform(1, 2), launch.key))

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, RunTasks):
            self._waiting.extend(command.launches)
            self._outcome.sources += sum(len(self._inputs_of(launch)) for launch in command.launches)
        elif isinstance(command, Discard) and command.key in self._running:
            self._free.append(self._running.pop(command.key))
        elif isinstance(command, End):
            self._outcome.ended = command.outcome

    def _inputs_of(self, launch: Launch) -> list[SourceFile]:
        """The files that the task's order would name."""
        graph = self._state.graph
        if launch.key.stage == HEAD:
            groups = [(graph.head.inputs[0], task) for task in range(graph.stages[-1].task_count)]
        else:
            groups = [(each, part) for each in graph.stage(launch.key.stage).inputs for part in launch.partitions]
        return [file for exchange, group in groups for file in self._state.files(exchange, group)]
