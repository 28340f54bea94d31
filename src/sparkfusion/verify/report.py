"""The results of many verified queries: how many passed, and how many were distributed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sparkfusion.verify.result import Outcome, VerifyResult


class Report:
    """Collects results. It keeps their summaries and not their answers, so that a long run does not fill the memory."""

    def __init__(self, results: Iterable[VerifyResult] = ()) -> None:
        self._rows: list[dict[str, Any]] = []
        for result in results:
            self.add(result)

    def add(self, result: VerifyResult) -> None:
        self._rows.append(result.to_json())

    @property
    def counts(self) -> dict[Outcome, int]:
        """How often each outcome occurred, zeros included."""
        found = Counter(row["outcome"] for row in self._rows)
        return {outcome: found[outcome.value] for outcome in Outcome}

    @property
    def total(self) -> int:
        return len(self._rows)

    @property
    def really_distributed(self) -> int:
        """Queries whose answer was right and that ran as several tasks."""
        return self.counts[Outcome.PASSED]

    @property
    def ok(self) -> bool:
        """Whether the run succeeded: at least one query was distributed and right, none failed, and all were compared.

        Some queries may not have been distributed. False if there was no query.
        """
        return self.failures == 0 and self.not_compared == 0 and self.really_distributed > 0

    @property
    def failures(self) -> int:
        """Queries with a wrong answer or an error, also with the same error in every leg."""
        return sum(count for outcome, count in self.counts.items() if outcome.failed or outcome is Outcome.BOTH_FAILED)

    @property
    def not_compared(self) -> int:
        """Queries whose answer could not be compared."""
        return self.counts[Outcome.NOT_COMPARABLE]

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "really_distributed": self.really_distributed,
            "ok": self.ok,
            "float_tolerance_count": sum(row["float_tolerance_count"] for row in self._rows),
            "outcomes": {outcome.value: count for outcome, count in self.counts.items()},
            "queries": self._rows,
        }

    def to_json_text(self) -> str:
        return json.dumps(self.to_json(), indent=2)

    def to_text(self) -> str:
        """A table with a line for each query that did not pass, under the counts."""
        lines = [f"{outcome.value:<16} {count:>6}" for outcome, count in self.counts.items() if count]
        lines.append(f"{'total':<16} {self.total:>6}")
        lines.append(f"really distributed and right: {self.really_distributed} of {self.total}")
        tolerated = sum(row["float_tolerance_count"] for row in self._rows)
        if tolerated:
            lines.append(f"floats that needed the tolerance: {tolerated}")
        for row in self._rows:
            if row["outcome"] != Outcome.PASSED.value:
                label = row["name"] or " ".join(row["query"].split())[:60]
                reason = row["reason"] or (f"the {row['leg']} leg differs" if row["leg"] else "")
                lines.append(f"  {row['outcome']:<16} {label}: {reason}".rstrip(": "))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()
