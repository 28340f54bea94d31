"""What a test asks of the cluster's process and what it hears back. Plain data, one line of JSON each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Store = Literal["shared", "spark"]
Kind = Literal["none", "io_error", "worker_killed", "executor_killed", "slow", "raced", "held"]


@dataclass(frozen=True)
class Fault:
    """What a function of a query does to the task that calls it.

    `none`: nothing. Once in a query, in the task that comes `on_task`-th: `io_error` raises an error that may be tried
    again, `worker_killed` ends the Python worker, `executor_killed` the executor's JVM, `slow` waits until the query is
    over, `raced` waits until another attempt has come as far. `held` waits in every task until the query is over.
    `on_call`: not before the task's so many-th call.
    """

    kind: Kind = "none"
    on_task: int = 1
    on_call: int = 1


@dataclass(frozen=True)
class Experiment:
    """One query, and what goes wrong in it.

    Attributes:
        tables: directories of Parquet files by table name.
        functions: bigint → the same bigint, for the query to call; each notes who calls it.
        kill_after_stage: the executor that called a function last is killed when this stage is finished.
        cancel_at: the query is cancelled when so many tasks are held.
        fed: the tables are feeds, of row groups.
        workers: afterwards the query is run again until so many resident workers serve it.
    """

    sql: str
    store: Store
    tables: Mapping[str, str]
    functions: Mapping[str, Fault] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    kill_after_stage: int | None = None
    cancel_at: int | None = None
    fed: bool = False
    workers: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Experiment:
        data = json.loads(line)
        functions = {name: Fault(**fault) for name, fault in data.pop("functions").items()}
        return cls(functions=functions, **data)


@dataclass(frozen=True)
class Call:
    """One call of a function in a task: one batch. `attempt` is unique, whatever is retried or speculated. `cpus`: that
    Spark reserved for the task; 0 if it is none of Spark's. `at`: seconds on this machine's clock."""

    function: str
    attempt: int
    executor: int
    first: int
    faulty: bool
    cpus: int
    at: float


@dataclass(frozen=True)
class Ended:
    """How an attempt at a task ended, in Spark's words: `Success`, `ExceptionFailure`, `ExecutorLostFailure`, …"""

    stage: int
    stage_attempt: int
    task: int
    attempt: int
    reason: str
    speculative: bool


@dataclass(frozen=True)
class Report:
    """A task that was committed, as the query reports it."""

    stage: int
    task: int
    rows: int
    earlier_attempts: int
    recomputed_inputs: int


@dataclass(frozen=True)
class Failure:
    """A failed attempt, as the query's events tell it."""

    stage: int
    task: int
    retried: bool
    message: str


@dataclass(frozen=True)
class Answer:
    """What happened.

    Attributes:
        rows: of the result, in its order; empty after an error.
        error: the class and the words of what the query raised.
        seconds_after_cancel: how long the reader waited to hear of it.
        calls: of the functions, in the order they came.
        ended: attempts of Spark's tasks, from its event log.
        failures, reports: what sparkfusion itself tells of them.
        left: what the query left behind, in words.
        place: where the query ran, in the words of explain.
    """

    rows: list[list[Any]]
    error: str | None
    seconds: float
    seconds_after_cancel: float | None
    executors: list[int]
    killed: int | None
    calls: list[Call]
    ended: list[Ended]
    failures: list[Failure]
    reports: list[Report]
    left: list[str]
    place: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Answer:
        data = json.loads(line)
        parts: dict[str, Callable[..., object]] = {
            "calls": Call,
            "ended": Ended,
            "failures": Failure,
            "reports": Report,
        }
        for name, part in parts.items():
            data[name] = [part(**item) for item in data[name]]
        return cls(**data)

    def executors_of(self, function: str) -> set[int]:
        """The executors that called the function."""
        return {call.executor for call in self.calls if call.function == function}

    def cpus_of(self, function: str) -> set[int]:
        """What Spark reserved for the tasks that called the function."""
        return {call.cpus for call in self.calls if call.function == function}

    def most_at_once(self, function: str) -> int:
        """How many tasks of one executor called the function at the same time, as far as their calls show it: one
        between the first and the last call of another one."""
        spans: dict[tuple[int, int], list[float]] = defaultdict(list)
        for call in self.calls:
            if call.function == function:
                spans[call.executor, call.attempt].append(call.at)
        return max(
            sum(other == executor and min(found) <= at <= max(found) for (other, _), found in spans.items())
            for (executor, _), times in spans.items()
            for at in times
        )

    def computed_again(self, function: str) -> int:
        """How many batches the function saw in more than one attempt."""
        attempts: dict[int, set[int]] = defaultdict(set)
        for call in self.calls:
            if call.function == function:
                attempts[call.first].add(call.attempt)
        return sum(len(found) > 1 for found in attempts.values())

    @property
    def earlier_attempts(self) -> int:
        """As the query reports them."""
        return sum(report.earlier_attempts for report in self.reports)

    @property
    def recomputed_inputs(self) -> int:
        """As the query reports them."""
        return sum(report.recomputed_inputs for report in self.reports)

    @property
    def speculative_copies(self) -> int:
        return sum(end.speculative for end in self.ended)

    def describe(self) -> str:
        """For the message of an assertion that failed."""
        lines = [f"{self.seconds:.1f} s, {len(self.rows)} rows, error: {self.error}", f"killed: {self.killed}"]
        lines += [repr(item) for part in (self.calls, self.ended, self.failures, self.reports) for item in part]
        return "\n".join([*lines, *self.left])
