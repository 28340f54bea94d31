"""A TPC suite, verified query by query at several partition counts, with a report at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkfusion import Session
from sparkfusion.bench.tpc import Suite
from sparkfusion.observe.explain import Explained, render_explain
from sparkfusion.plan.stage import Distribution
from sparkfusion.verify import Outcome, Report, VerifyResult, verify_query
from tests.runners import LOCAL, Runner
from tests.suites.terminal import say

SCALE = 0.01
SPARK_PARTITIONS = 3
ANALYZED_PARTITIONS = 3
FEW_MINUTES = "on Spark a query takes ten times as long: there it runs at one partition count, below"

Connect = Callable[[dict[str, object]], Session]


class SuiteRun:
    """Sessions over one copy of the data, one for each partition count, and what came out of each query."""

    def __init__(self, suite: Suite, directory: Path, runner_name: str, connect: Connect) -> None:
        self._suite = suite
        self._directory = directory
        self._runner_name = runner_name
        self._connect = connect
        self._sessions: dict[int, Session] = {}
        self._reports: dict[int, Report] = {}

    def check(self, number: int, partitions: int, *, one_task: frozenset[int] = frozenset()) -> None:
        """Fail unless the query gives its single-node answer, really distributed.

        With one partition there is nothing to divide. Queries in `one_task` are known to run as a whole.
        """
        result = self._verify(number, partitions)
        divided = partitions > 1 and number not in one_task
        expected = Outcome.PASSED if divided else Outcome.NOT_DISTRIBUTED
        assert result.outcome is expected, f"{result.describe()}\n{self._suite.queries()[number]}"
        self._explain(number, partitions, result)

    def _explain(self, number: int, partitions: int, result: VerifyResult) -> None:
        """Whatever runs can be explained. One that is run for it costs a run, so that is done once for a query."""
        if result.graph is None:
            assert "not distributed: " in self._session(partitions).sql(self._suite.queries()[number]).explain_text()
            return
        shown = render_explain(Explained(Distribution(result.graph), lambda: ""))
        assert all(f"┌ Stage {stage.id} ── " in shown for stage in result.graph.stages)
        if partitions == ANALYZED_PARTITIONS and self._runner_name == LOCAL:
            analyzed = self._session(partitions).sql(self._suite.queries()[number]).explain_text(analyze=True)
            assert all(f"┌ Stage {stage.id} ── " in analyzed for stage in result.graph.stages)
            assert " ── ran as " in analyzed

    def _verify(self, number: int, partitions: int) -> VerifyResult:
        name = f"{self._suite.name} q{number} at {partitions} on {self._runner_name}"
        result = verify_query(self._session(partitions), self._suite.queries()[number], name=name)
        self._reports.setdefault(partitions, Report()).add(result)
        return result

    def _session(self, partitions: int) -> Session:
        if partitions not in self._sessions:
            options: dict[str, object] = {
                "sparkfusion.bytes_per_partition": 1,
                "datafusion.execution.target_partitions": partitions,
            }
            session = self._connect(options)
            self._suite.register(session, self._directory)
            self._sessions[partitions] = session
        return self._sessions[partitions]

    def summary(self) -> str:
        lines = [
            f"{self._suite.name} on {self._runner_name} at {partitions} partitions: {report.really_distributed} of "
            f"{report.total} queries equal and really distributed"
            for partitions, report in sorted(self._reports.items())
        ]
        return "\n".join(lines)


@contextmanager
def suite_run(
    suite: Suite, directory: Path, runner: Runner, connect: Connect, request: pytest.FixtureRequest
) -> Iterator[SuiteRun]:
    """A run over data that is there, on one runner; its summary goes to the terminal when it is done."""
    run = SuiteRun(suite, directory, runner.name, connect)
    yield run
    say(request.config, run.summary())
