"""Verify one query: run it in three ways (legs), and compare the answers.

| leg         | what runs                                                        | a difference here means           |
|-------------|------------------------------------------------------------------|-----------------------------------|
| single node | plain DataFusion                                                 | it is the reference               |
| round trip  | the plan made for distribution, encoded, decoded, in one process | the wire format or our rules lose |
| distributed | stages, tasks and exchanges                                      | cut, isolation or execution fails |
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkfusion.errors import SparkfusionError, VerificationError, classify
from sparkfusion.plan.stage import Distribution
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.datafusion_calls import QUERIES_ONLY
from sparkfusion.session.session import Session
from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.evidence import Evidence
from sparkfusion.verify.interrupt import interruptible
from sparkfusion.verify.judge import Judge, Verdict
from sparkfusion.verify.own_session import OwnDataFrame, OwnSession
from sparkfusion.verify.reproducer import write_reproducer
from sparkfusion.verify.result import Leg, LegName, Outcome, VerifyResult
from sparkfusion.verify.subject import VerifiableDataFrame, VerifiableSession, datafusion_settings_of

_HAS_EFFECT = re.compile(r"(?:DDL|DML|Statement) not supported: (.+)")


def verify_query(
    session: Session | VerifiableSession,
    query: str | DataFrame | VerifiableDataFrame,
    *,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    options: CompareOptions | None = None,
    reproducer_dir: str | Path | None = None,
) -> VerifyResult:
    """Run a query in three legs and compare the answers. A wrong answer or a failing query is an outcome and does not
    raise.

    Args:
        session: where the query runs; its settings decide how it is distributed.
        query: SQL, or a DataFrame of the session.
        name: a short name for reports and for the reproducer's directory.
        params: values for `$name` in the SQL text.
        options: how strictly answers are compared.
        reproducer_dir: the directory for the reproducer of a failure; without it nothing is written.
    """
    options = options or CompareOptions()
    session = OwnSession(session) if isinstance(session, Session) else session
    dataframe: VerifiableDataFrame | None
    if isinstance(query, str):
        text = query
        if (effect := _effect(session, query, params)) is not None:
            return VerifyResult(text, Outcome.NOT_COMPARABLE, (), effect, name=name)
        dataframe, error = _plan(session, query, params)
    else:
        dataframe, error = OwnDataFrame(query) if isinstance(query, DataFrame) else query, None
        text = _plan_as_text(dataframe)
    if dataframe is None:
        assert error is not None
        return replace(_planning_failed(session, text, error), name=name)
    result = replace(_verify_frame(session, text, dataframe, options), name=name)
    if result.outcome.failed and reproducer_dir is not None:
        result = replace(result, reproducer=write_reproducer(Path(reproducer_dir), session, dataframe, result))
    return result


def assert_distributed_eq(
    session: Session | VerifiableSession,
    query: str | DataFrame | VerifiableDataFrame,
    *,
    require_distributed: bool = True,
    expect_error: bool = False,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    options: CompareOptions | None = None,
    reproducer_dir: str | Path | None = None,
) -> VerifyResult:
    """Raise `VerificationError` unless the query was distributed and gave its single-node answer.

    A query that was not really distributed fails, unless `require_distributed=False`. A query that fails in the same
    way in every leg fails too, unless `expect_error=True`: a typo in a test proves nothing. A failure writes a
    reproducer to `reproducer_dir`, or to a new temporary directory, and the error names it.
    """
    reproducer_dir = reproducer_dir or Path(tempfile.gettempdir()) / "sparkfusion-reproducers"
    result = verify_query(session, query, name=name, params=params, options=options, reproducer_dir=reproducer_dir)
    accepted = {Outcome.BOTH_FAILED} if expect_error else {Outcome.PASSED}
    if not require_distributed and not expect_error:
        accepted.add(Outcome.NOT_DISTRIBUTED)
    if result.outcome not in accepted:
        raise VerificationError(_message(result, expect_error), hint=_hint(result, expect_error))
    return result


def _message(result: VerifyResult, expect_error: bool) -> str:
    wanted = "expected all runs to fail with the same kind of error\n" if expect_error else ""
    return f"{wanted}{result.describe()}\n  query: {' '.join(result.query.split())[:500]}"


def _hint(result: VerifyResult, expect_error: bool) -> str | None:
    if result.reproducer is not None:
        return f"the reproducer is in {result.reproducer}"
    if result.outcome is Outcome.NOT_DISTRIBUTED:
        return "set sparkfusion.bytes_per_partition to 1, or pass require_distributed=False"
    if result.outcome is Outcome.BOTH_FAILED and not expect_error:
        return "pass expect_error=True if the query should fail"
    if result.outcome is Outcome.NOT_COMPARABLE and result.legs[0].table is None:
        return "register the same rows as a plain table, and compare the two answers with compare_tables"
    return None


def _plan(
    session: VerifiableSession, sql: str, params: Mapping[str, Any] | None
) -> tuple[VerifiableDataFrame | None, SparkfusionError | None]:
    leg, dataframe = _time_leg("distributed", lambda: session.sql(sql, params))
    return dataframe, leg.error


def _plan_as_text(dataframe: VerifiableDataFrame) -> str:
    return f"-- a DataFrame with this plan:\n{dataframe.to_datafusion().logical_plan().display_indent()}"


def _planning_failed(session: VerifiableSession, sql: str, error: SparkfusionError) -> VerifyResult:
    """The result for SQL that the session refused: plain DataFusion should refuse it too."""

    def run_plain() -> pa.Table:
        return session.context.sql_with_options(sql, QUERIES_ONLY).to_arrow_table()

    refused = Leg("distributed", error=error)
    single, _ = _time_leg("single node", lambda: interruptible(run_plain))
    outcome = Outcome.BOTH_FAILED if single.error_kind == error.kind else Outcome.ERROR_MISMATCH
    return VerifyResult(sql, outcome, (single, refused), f"planning failed: {error.message}", "distributed")


def _effect(session: VerifiableSession, sql: str, params: Mapping[str, Any] | None) -> str | None:
    """Why a statement is not run in three legs, if it changes something each time it runs; None for queries."""
    try:
        session.context.sql_with_options(sql, QUERIES_ONLY, param_values=dict(params or {}))
    except Exception as error:
        found = _HAS_EFFECT.search(str(error))
        return (
            f"{found[1]} is not a query. It was not run, because verify runs a query several times" if found else None
        )
    return None


def _verify_frame(
    session: VerifiableSession, text: str, dataframe: VerifiableDataFrame, options: CompareOptions
) -> VerifyResult:
    beyond = dataframe.only_distributed()
    if beyond is not None:
        return _incomparable(text, dataframe, beyond)
    single, _ = _time_leg("single node", lambda: interruptible(lambda: dataframe.to_datafusion().to_arrow_table()))
    planned, distribution = _time_leg("distributed", dataframe.distribution)
    distribution = distribution or Distribution()
    round_trip = Leg("round trip")
    if distribution.distributed:
        round_trip, _ = _time_leg("round trip", lambda: interruptible(dataframe.round_trip))
    with Evidence(session) as evidence:
        distributed, _ = _time_leg("distributed", dataframe.collect) if planned.error is None else (planned, None)
        if distribution.distributed and distributed.error is None:
            evidence.wait()
    legs = (single, round_trip, distributed)
    base = VerifyResult(
        text, Outcome.PASSED, legs, graph=distribution.graph, stages=evidence.stages, tasks=evidence.tasks
    )
    failed = _error_outcome(base, single, round_trip, distributed)
    if failed is not None:
        return failed
    assert single.table is not None
    judge = Judge(
        single.table,
        dataframe.to_datafusion().logical_plan(),
        session.context,
        options,
        lambda: datafusion_settings_of(session),
    )
    return _compare_legs(base, judge, distribution, evidence)


def _incomparable(text: str, dataframe: VerifiableDataFrame, why: str) -> VerifyResult:
    """The result for a query that cannot run on a single node: only the distributed leg runs."""
    distributed, _ = _time_leg("distributed", dataframe.collect)
    failed = f"; distributed it fails with: {_error_text(distributed)}" if distributed.error is not None else ""
    legs = (Leg("single node"), Leg("round trip"), distributed)
    return VerifyResult(text, Outcome.NOT_COMPARABLE, legs, f"{why}{failed}", graph=dataframe.distribution().graph)


def _error_outcome(base: VerifyResult, single: Leg, round_trip: Leg, distributed: Leg) -> VerifyResult | None:
    """The outcome if any leg failed."""
    ran = [leg for leg in (single, round_trip, distributed) if leg.error is not None or leg.table is not None]
    failed = [leg for leg in ran if leg.error is not None]
    if not failed:
        return None
    if len(failed) == len(ran) and len({leg.error_kind for leg in ran}) == 1:
        return replace(base, outcome=Outcome.BOTH_FAILED, reason=_error_text(single))
    if single.error is None and round_trip.error is not None:
        return replace(base, outcome=Outcome.WIRE_LOSS, leg="round trip", reason=_error_text(round_trip))
    odd = next((leg for leg in ran[1:] if leg.error_kind != single.error_kind), distributed)
    expected = "it should give an answer" if single.error is None else f"single node fails with: {_error_text(single)}"
    got = "it gives an answer" if odd.error is None else f"it fails with: {_error_text(odd)}"
    return replace(base, outcome=Outcome.ERROR_MISMATCH, leg=odd.name, reason=f"{got}; {expected}")


def _error_text(leg: Leg) -> str:
    return "" if leg.error is None else f"{leg.error.kind} error: {leg.error.message}"


def _compare_legs(base: VerifyResult, judge: Judge, distribution: Distribution, evidence: Evidence) -> VerifyResult:
    verdicts = {leg.name: judge.judge(leg.table) for leg in base.legs[1:] if leg.table is not None}
    blame: dict[LegName, Outcome] = {"round trip": Outcome.WIRE_LOSS, "distributed": Outcome.WRONG_ANSWER}
    final = verdicts["distributed"]
    base = replace(
        base,
        comparison=final.comparison,
        float_tolerance_count=final.comparison.float_tolerance_count,
    )
    for name, verdict in verdicts.items():
        if not verdict.right and verdict.undecided is None:
            return _blame(base, blame[name], name, verdict)
    for name, verdict in verdicts.items():
        if not verdict.right:
            return _blame(base, Outcome.NOT_COMPARABLE, name, verdict)
    why_not = _why_not_distributed(distribution, evidence)
    if why_not is not None:
        return replace(base, outcome=Outcome.NOT_DISTRIBUTED, reason=why_not)
    return base


def _blame(base: VerifyResult, outcome: Outcome, name: LegName, verdict: Verdict) -> VerifyResult:
    return replace(base, outcome=outcome, leg=name, comparison=verdict.comparison, reason=verdict.undecided)


def _why_not_distributed(distribution: Distribution, evidence: Evidence) -> str | None:
    if distribution.graph is None:
        return distribution.reason or "the query runs on a single node"
    if evidence.tasks == 0:
        return f"{distribution.graph.task_count} tasks were planned, none was seen to run"
    if evidence.widest_stage < 2:
        return f"no stage ran more than one task ({evidence.tasks} tasks in {evidence.stages} stages)"
    return None


def _time_leg(name: LegName, run: Callable[[], Any]) -> tuple[Leg, Any]:
    """Run one leg. A Rust panic arrives as a `BaseException`; it is an error of the leg like any other."""
    start = time.perf_counter()
    try:
        found = run()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        return Leg(name, error=classify(error), seconds=time.perf_counter() - start), None
    table = found if isinstance(found, pa.Table) else None
    return Leg(name, table, seconds=time.perf_counter() - start), found
