"""The results of a benchmark. Data only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

SINGLE_NODE, SPARK_SQL, OURS = "single_node", "spark_sql", "sparkfusion"
"""The engines that are compared. Spark SQL only if the session runs on Spark."""


@dataclass(frozen=True)
class Turns:
    """One query on one engine.

    Attributes:
        seconds: the time of each round that succeeded.
        error: why a round failed; then the engine does not run the query again.
        equal: whether the answer equals that of single-node DataFusion; None if that cannot be decided, or has not been
            checked.
        note: what differs, or why it cannot be decided.
    """

    seconds: tuple[float, ...] = ()
    error: str | None = None
    equal: bool | None = None
    note: str = ""

    @property
    def best(self) -> float | None:
        """The best time; None if there is no answer, or a different one."""
        return min(self.seconds) if self.seconds and self.error is None and self.equal is not False else None


@dataclass(frozen=True)
class BenchedQuery:
    """One query on all engines. `not_distributed`: why sparkfusion ran it on a single node."""

    query: int
    turns: Mapping[str, Turns]
    stages: int = 0
    tasks: int = 0
    not_distributed: str | None = None

    def ratio(self, engine: str) -> float | None:
        """Our time divided by that of another engine; None if one of them has no time."""
        ours, theirs = self.turns[OURS].best, self.turns[engine].best
        return None if ours is None or theirs is None else ours / theirs

    @property
    def is_right(self) -> bool:
        """Whether every engine gave the same answer."""
        return all(turns.error is None and turns.equal is not False for turns in self.turns.values())


@dataclass(frozen=True)
class Ratio:
    """sparkfusion compared with another engine, over the queries that both answered alike."""

    engine: str
    queries: int
    ours: float
    theirs: float
    geometric_mean: float

    @property
    def total(self) -> float:
        """Our seconds for all of these queries, divided by theirs."""
        return self.ours / self.theirs


@dataclass
class BenchResult:
    """All measurements so far. `is_complete`: whether all chosen queries have been measured."""

    scale: float
    rounds: int
    place: str
    engines: tuple[str, ...]
    asked: tuple[int, ...]
    facts: Mapping[str, Any]
    queries: list[BenchedQuery] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return len(self.queries) == len(self.asked)

    @property
    def is_right(self) -> bool:
        """Whether all engines gave the same answer to every query so far."""
        return all(query.is_right for query in self.queries)

    def compare_with(self, engine: str) -> Ratio | None:
        """The ratio to another engine; None if both engines gave the same answer to no query."""
        ratios = {query.query: query.ratio(engine) for query in self.queries}
        both = [query for query in self.queries if ratios[query.query] is not None]
        mean = geometric_mean(ratio for ratio in ratios.values() if ratio is not None)
        if mean is None:
            return None
        ours, theirs = (sum(query.turns[name].best or 0.0 for query in both) for name in (OURS, engine))
        return Ratio(engine, len(both), ours, theirs, mean)

    def to_json(self) -> dict[str, Any]:
        """Everything, as `--json` writes it."""
        others = [engine for engine in self.engines if engine != OURS]
        return {
            "suite": "tpch",
            "scale": self.scale,
            "rounds": self.rounds,
            "place": self.place,
            **self.facts,
            "complete": self.is_complete,
            "answers_equal": self.is_right,
            "queries": [_query_json(query, others) for query in self.queries],
            "ratios": {engine: _ratio_json(self.compare_with(engine)) for engine in others},
        }

    def __str__(self) -> str:
        from sparkfusion.bench.bench_report import describe_result

        return describe_result(self)


def _query_json(query: BenchedQuery, others: Iterable[str]) -> dict[str, Any]:
    return {
        "query": query.query,
        "stages": query.stages,
        "tasks": query.tasks,
        "not_distributed": query.not_distributed,
        "engines": {
            name: {"seconds": list(turns.seconds), "error": turns.error, "equal": turns.equal, "note": turns.note}
            for name, turns in query.turns.items()
        },
        "ratios": {engine: query.ratio(engine) for engine in others},
    }


def _ratio_json(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    seconds = {OURS: ratio.ours, ratio.engine: ratio.theirs}
    return {
        "queries": ratio.queries,
        "seconds": seconds,
        "total": ratio.total,
        "geometric_mean": ratio.geometric_mean,
    }


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean, for ratios: the mean of twice as fast and twice as slow is 1.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs)) if logs else None
