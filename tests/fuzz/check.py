"""Run one case distributed and on a single node, and compare."""

from __future__ import annotations

import queue
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from datafusion import SessionContext

import sparkfusion
from sparkfusion.session.dataframe import look_inside
from sparkfusion.verify import Outcome, VerifyResult, compare_tables, verify_query
from sparkfusion.worker.task_context import session_config
from tests.fuzz.case import Case
from tests.runners import EMBEDDED, Runner

PATIENCE = 60.0
"""Seconds after which a case counts as hanging; the slowest of 1,600 took 1.6."""


class CaseError(AssertionError):
    """The distributed answer is not the single-node answer, or there is none."""


@dataclass(frozen=True)
class Answer:
    """What `verify` says, and whether a failure is one of plain DataFusion."""

    result: VerifyResult
    upstream: bool


def check_case(case: Case, runner: Runner = EMBEDDED) -> VerifyResult:
    """The result of `verify`; raises `CaseError` if it is a failure of ours or does not come at all."""
    answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()
    # A thread that hangs in native code cannot be stopped, only left behind.
    threading.Thread(target=_run, args=(case, runner, answers), name="fuzz case", daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE)
    except queue.Empty:
        raise CaseError(f"no answer within {PATIENCE:.0f} seconds") from None
    if isinstance(answer, BaseException):
        raise CaseError(f"the session failed outside of the query: {answer!r}") from answer
    if answer.result.outcome.failed and not answer.upstream:
        raise CaseError(answer.result.describe())
    return answer.result


def is_upstream_defect(session: sparkfusion.Session, sql: str, result: VerifyResult) -> bool:
    """Whether DataFusion by itself, with no plan encoded and no task of ours, goes wrong under our planning options.

    Seen in DataFusion 55: a cube over a constant column, or over two equal ones, counts on an order that its NULLs
    break; a sort-merge join over VALUES gives NULLs in a column that it declares without. What is excused is a loss in
    the round trip that plain DataFusion has too, and a difference where the single node breaks its own ORDER BY.
    """
    if result.comparison is not None and any("not kept on a single node" in note for note in result.comparison.notes):
        return True  # the single node's own answer is not in the order it was asked for
    if result.outcome is not Outcome.WIRE_LOSS:
        return False
    frame = session.sql(sql)
    engine, query = look_inside(frame)
    context = SessionContext(session_config(engine.plan(query).options))
    try:
        plain = context.create_dataframe_from_logical_plan(frame.logical_plan()).to_arrow_table()
    except Exception:
        return result.find_leg("round trip").error is not None
    expected = result.find_leg("single node").table
    return expected is not None and not compare_tables(expected, plain).equal


def _run(case: Case, runner: Runner, answers: queue.SimpleQueue[Answer | BaseException]) -> None:
    config = {**runner.settings, "sparkfusion.bytes_per_partition": 1, **dict(case.settings)}
    try:
        with tempfile.TemporaryDirectory() as directory, sparkfusion.connect(runner.target, config=config) as session:
            case.register(session, Path(directory))
            result = verify_query(session, case.sql)
            answers.put(Answer(result, is_upstream_defect(session, case.sql, result)))
    except BaseException as error:
        answers.put(error)
