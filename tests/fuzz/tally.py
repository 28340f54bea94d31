"""What a run of many cases has shown: outcomes, why cases were not distributed, and which features were in them."""

from __future__ import annotations

import re
import textwrap
from collections import Counter

from sparkfusion.verify import Outcome
from tests.fuzz.case import Case
from tests.fuzz.check import check_case
from tests.runners import Runner


class Tally:
    """Counts the cases that it checks. Attempts at shrinking count too, so the counts mean something in good runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.outcomes: Counter[Outcome] = Counter()
        self.reasons: Counter[str] = Counter()
        self.features: Counter[str] = Counter()

    def check(self, case: Case) -> None:
        """Check a case and count it; raises if it fails."""
        self.features.update(case.features)
        result = check_case(case, self._runner)
        self.outcomes[result.outcome] += 1
        if result.outcome is not Outcome.PASSED:
            reason = re.sub(r"\d[\d,.]*", "#", (result.reason or "").split("\n")[0])
            self.reasons[f"{result.outcome}: {reason[:100]}"] += 1

    def share(self, outcome: Outcome) -> float:
        return self.outcomes[outcome] / max(1, self.outcomes.total())

    def summary(self, *, everything: bool = False) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        cases = f"{self.outcomes.total()} cases with {len(self.features)} features"
        lines = [f"random SQL on {self._runner.name}, {cases}: {counts}"]
        if everything:
            lines += [f"  {count:>5}  {reason}" for reason, count in self.reasons.most_common()]
            seen = ", ".join(f"{feature} {count}" for feature, count in self.features.most_common())
            lines += textwrap.wrap(f"features: {seen}", 120, subsequent_indent="  ")
        return "\n".join(lines)
