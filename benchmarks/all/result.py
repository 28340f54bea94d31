"""What a run found out, as it is kept in JSON. Nothing here runs anything."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.all.engines import BASE
from sparkfusion.bench.bench_result import geometric_mean


@dataclass
class Measured:
    """One query on one engine.

    Attributes:
        seconds: of each round, as far as it answered.
        error: why it did not answer. Then it counts as not answered, whatever an earlier round did.
        equal: whether it gave DataFusion's answer; None if that cannot be decided, and `note` says why.
        peak_bytes: memory of all processes of the engine, the most of all rounds.
        shuffled_bytes: what sparkfusion's stages wrote for each other; None for other engines.
    """

    query: int
    engine: str
    seconds: list[float] = field(default_factory=list)
    error: str | None = None
    equal: bool | None = None
    note: str = ""
    peak_bytes: int = 0
    shuffled_bytes: int | None = None

    @property
    def answered(self) -> bool:
        return self.error is None and bool(self.seconds)

    @property
    def counts(self) -> bool:
        """Whether its time says something. A different answer may have been less work."""
        return self.answered and self.equal is not False

    @property
    def best(self) -> float:
        return min(self.seconds)


@dataclass
class SuiteResult:
    """All queries of one suite at one scale, on all engines.

    Attributes:
        asked: the queries that every engine was asked.
        restarts: processes that were ended on the way, because memory was short, and started again.
    """

    suite: str
    scale: float
    asked: list[int] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.suite}-sf{self.scale:g}"

    @property
    def title(self) -> str:
        return f"{ {'tpch': 'TPC-H', 'tpcds': 'TPC-DS'}.get(self.suite, self.suite) }, scale factor {self.scale:g}"

    def find(self, query: int, engine: str) -> Measured | None:
        return next((each for each in self.measured if each.query == query and each.engine == engine), None)

    def of(self, engine: str) -> list[Measured]:
        return [each for each in self.measured if each.engine == engine]

    def ratios(self, engine: str) -> dict[int, float]:
        """Time by time of single-node DataFusion, of each query that both answered alike."""
        base = {each.query: each for each in self.of(BASE) if each.counts}
        return {
            each.query: each.best / base[each.query].best
            for each in self.of(engine)
            if each.counts and each.query in base
        }


@dataclass(frozen=True)
class Summary:
    """One engine over all queries of a suite. The ratios are over the queries in `SuiteResult.ratios`.

    `total` is the time of these queries, and `base_total` that of DataFusion for the same ones.
    """

    engine: str
    asked: int
    answered: int
    different: int
    undecided: int
    total: float
    base_total: float
    geometric_mean: float | None
    worst: tuple[int, float] | None
    peak_bytes: int
    shuffled_bytes: int | None

    @property
    def ratio(self) -> float | None:
        return self.total / self.base_total if self.base_total else None


def summarize(result: SuiteResult, engine: str) -> Summary:
    measured = result.of(engine)
    ratios = result.ratios(engine)
    best = {each.query: each.best for each in measured if each.counts}
    base = {each.query: each.best for each in result.of(BASE) if each.counts}
    shuffled = [each.shuffled_bytes for each in measured if each.shuffled_bytes is not None]
    return Summary(
        engine,
        asked=len(result.asked),
        answered=sum(each.answered for each in measured),
        different=sum(each.answered and each.equal is False for each in measured),
        undecided=sum(each.answered and each.equal is None for each in measured),
        total=sum(best[query] for query in ratios),
        base_total=sum(base[query] for query in ratios),
        geometric_mean=geometric_mean(ratios.values()),
        worst=max(ratios.items(), key=lambda pair: pair[1]) if ratios else None,
        peak_bytes=max((each.peak_bytes for each in measured), default=0),
        shuffled_bytes=sum(shuffled) if shuffled else None,
    )


@dataclass
class BenchmarkRun:
    """Everything that a run writes down. `ended` says whether it came to its end or was interrupted."""

    command: str
    rounds: int
    limit_seconds: float
    facts: dict[str, Any]
    engines: list[str]
    suites: list[SuiteResult] = field(default_factory=list)
    ended: str = "running"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, path: Path) -> BenchmarkRun:
        found = json.loads(path.read_text())
        suites = [
            SuiteResult(**{**suite, "measured": [Measured(**each) for each in suite["measured"]]})
            for suite in found.pop("suites")
        ]
        return cls(**found, suites=suites)
