"""Run one query on several engines in turn, so that a slow minute of the machine affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, Turns
from sparkfusion.bench.referee import Referee, Ruling

Ask = Callable[[], pa.Table]
"""Runs one query on one engine, from its text to all of its rows. May raise any exception."""


def time_answer(ask: Ask) -> tuple[float, pa.Table]:
    """The seconds that an answer takes, and the answer."""
    started = time.perf_counter()
    answer = ask()
    return time.perf_counter() - started, answer


def take_turns(
    engines: Mapping[str, Ask],
    rounds: int,
    step: Callable[[str, int], None],
    is_stop: Callable[[BaseException], bool],
) -> tuple[dict[str, Turns], dict[str, pa.Table]]:
    """The times of every engine, and its last answer.

    Args:
        step: called before each turn with the engine and the round, from 1.
        is_stop: whether an error means that the user stops the benchmark. Such an error is raised. Any other error is
            recorded, and that engine does not run the query again.
    """
    found = dict.fromkeys(engines, Turns())
    answers: dict[str, pa.Table] = {}
    for number in range(1, rounds + 1):
        for engine, ask in engines.items():
            if found[engine].error is not None:
                continue
            step(engine, number)
            try:
                seconds, answers[engine] = time_answer(ask)
            except Exception as error:
                if is_stop(error):
                    raise
                found[engine] = replace(found[engine], error=str(error) or type(error).__name__)
                answers.pop(engine, None)
            else:
                found[engine] = replace(found[engine], seconds=(*found[engine].seconds, seconds))
    return found, answers


def compare_answers(
    sql: str, found: Mapping[str, Turns], answers: Mapping[str, pa.Table], referee: Referee
) -> dict[str, Turns]:
    """`found`, with the comparison of each answer with that of single-node DataFusion."""
    return {engine: _with_ruling(engine, turns, sql, answers, referee) for engine, turns in found.items()}


def _with_ruling(engine: str, turns: Turns, sql: str, answers: Mapping[str, pa.Table], referee: Referee) -> Turns:
    reference = answers.get(SINGLE_NODE)
    if engine not in answers:
        return turns
    if reference is None:
        ruling = Ruling(None, "single-node DataFusion did not answer")
    elif engine == SINGLE_NODE:
        ruling = Ruling(True)
    elif engine == OURS:
        ruling = referee.rule_own(sql, reference, answers[engine])
    else:
        ruling = referee.rule_other(sql, reference, answers[engine], nulls="smallest")
    return replace(turns, equal=ruling.equal, note=ruling.note)
