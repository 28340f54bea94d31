"""The result of verifying one query: an outcome, the legs, and how the query was distributed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sparkfusion.errors import ErrorKind, SparkfusionError
from sparkfusion.plan.stage import StageGraph
from sparkfusion.verify.compare import Comparison

LegName = Literal["single node", "round trip", "distributed"]


class Outcome(StrEnum):
    """How a verification ended. Only `PASSED` is a proof."""

    PASSED = "passed"
    NOT_DISTRIBUTED = "not distributed"  # the answers agree, but no work was divided
    WIRE_LOSS = "wire loss"  # encoding and decoding the plan already changes the answer
    WRONG_ANSWER = "wrong answer"  # only the distributed answer differs
    ERROR_MISMATCH = "error mismatch"  # some legs fail, or with different kinds of errors
    BOTH_FAILED = "both failed"  # error parity: every leg fails with the same kind of error
    NOT_COMPARABLE = "not comparable"  # there are several right answers, or the query cannot run on a single node

    @property
    def failed(self) -> bool:
        return self in (Outcome.WIRE_LOSS, Outcome.WRONG_ANSWER, Outcome.ERROR_MISMATCH)


@dataclass(frozen=True)
class Leg:
    """One of the three runs: a table or an error, or neither if the leg was left out."""

    name: LegName
    table: pa.Table | None = None
    error: SparkfusionError | None = None
    seconds: float = 0.0

    @property
    def error_kind(self) -> ErrorKind | None:
        return None if self.error is None else self.error.kind

    def describe(self) -> str:
        if self.error is not None:
            return f"{self.name}: {self.error.kind} error after {self.seconds:.3f} s: {self.error.message}"
        if self.table is not None:
            return f"{self.name}: {self.table.num_rows} rows in {self.seconds:.3f} s"
        return f"{self.name}: not run"


@dataclass(frozen=True)
class VerifyResult:
    """The result for one query. `leg` names the leg that differs; `comparison` is that leg's, or the last one's.

    `stages` and `tasks` count those that really ran in the distributed leg; `graph` is the plan.
    """

    query: str
    outcome: Outcome
    legs: tuple[Leg, ...]
    reason: str | None = None
    leg: LegName | None = None
    comparison: Comparison | None = None
    graph: StageGraph | None = None
    stages: int = 0
    tasks: int = 0
    float_tolerance_count: int = 0
    name: str | None = None
    reproducer: Path | None = None

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    def __repr__(self) -> str:
        return f"VerifyResult({self.outcome}, {self.stages} stages, {self.tasks} tasks)"

    def find_leg(self, name: LegName) -> Leg:
        return next((leg for leg in self.legs if leg.name == name), Leg(name))

    def describe(self) -> str:
        """Several lines of text: the outcome with its reason, each leg, the first differences."""
        head = f"{self.name or 'query'}: {self.outcome}"
        if self.leg is not None and self.outcome is not Outcome.BOTH_FAILED:
            head += f" in the {self.leg} leg"
        lines = [head if self.reason is None else f"{head}: {self.reason}"]
        lines += [f"  {leg.describe()}" for leg in self.legs]
        lines.append(f"  ran {self.tasks} tasks in {self.stages} stages")
        if self.comparison is not None:
            lines += [f"  {line}" for line in self.comparison.describe().splitlines()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """A summary without the answers."""
        return {
            "name": self.name,
            "query": self.query,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "leg": self.leg,
            "stages": self.stages,
            "tasks": self.tasks,
            "float_tolerance_count": self.float_tolerance_count,
            "seconds": {leg.name: round(leg.seconds, 6) for leg in self.legs},
            "reproducer": None if self.reproducer is None else str(self.reproducer),
        }
