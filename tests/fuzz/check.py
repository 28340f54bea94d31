"""Run one case distributed and on a single node, and compare."""

from __future__ import annotations

import queue
import tempfile
import threading
from pathlib import Path

import sparkfusion
from sparkfusion.verify import VerifyResult, verify_query
from tests.fuzz.case import Case

PATIENCE = 60.0
"""Seconds after which a case counts as hanging; the slowest of 1,600 took 1.6."""


UPSTREAM_DEFECTS = ("is declared as non-nullable but contains null values",)
"""Errors of DataFusion 55 that depend on how a query is planned: seen with sort-merge joins over VALUES."""


class CaseError(AssertionError):
    """The distributed answer is not the single-node answer, or there is none."""


def check_case(case: Case) -> VerifyResult:
    """The result of the harness; raises `CaseError` if it is a failure or does not come at all."""
    answers: queue.SimpleQueue[VerifyResult | BaseException] = queue.SimpleQueue()
    # A thread that hangs in native code cannot be stopped, only left behind.
    threading.Thread(target=_run, args=(case, answers), name="fuzz case", daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE)
    except queue.Empty:
        raise CaseError(f"no answer within {PATIENCE:.0f} seconds") from None
    if isinstance(answer, BaseException):
        raise CaseError(f"the session failed outside of the query: {answer!r}") from answer
    if answer.outcome.failed and not is_upstream_defect(answer):
        raise CaseError(answer.describe())
    return answer


def is_upstream_defect(result: VerifyResult) -> bool:
    """Whether plain DataFusion, without any task of ours, fails on a plan that only other options avoid.

    Only an error of the round trip counts, never a different answer: the plan is DataFusion's own, run whole.
    """
    error = result.leg_named("round trip").error
    return error is not None and any(mark in error.message for mark in UPSTREAM_DEFECTS)


def _run(case: Case, answers: queue.SimpleQueue[VerifyResult | BaseException]) -> None:
    config = {"sparkfusion.bytes_per_partition": 1, **dict(case.settings)}
    try:
        with tempfile.TemporaryDirectory() as directory, sparkfusion.connect(config=config) as session:
            case.register(session, Path(directory))
            answers.put(verify_query(session, case.sql))
    except BaseException as error:
        answers.put(error)
