"""Lines of event logs for tests: a query of many stages that ran on several machines."""

from __future__ import annotations

from typing import Any

LogLine = dict[str, Any]
BEGIN = 1_700_000_000.0


def planned(plan: LogLine | None = None, *, text: str = "select 1", query: str = "q1") -> LogLine:
    return {
        "event": "query_planned",
        "version": 1,
        "at": BEGIN + 0.5,
        "query": query,
        "text": text,
        "seconds": 0.5,
        "reason": None if plan else "it reads no data",
        "started": True,
        **({"plan": plan} if plan else {}),
    }


def chain_of(stages: int) -> LogLine:
    """A plan in which each stage reads the one before it, and every third reads a scan too."""
    made: list[LogLine] = []
    exchanges: list[LogLine] = []
    for number in range(1, stages + 1):
        inputs = (
            [] if number % 3 == 1 else [number - 1] if number % 3 == 2 else [number - 1, *([number - 3] * (number > 3))]
        )
        operators = [
            "AggregateExec: mode=Partial, gby=[k@0 as k]",
            "  DataSourceExec: file_groups=4, projection=[k, v]",
        ]
        made.append(
            {"id": number, "tasks": 2, "inputs": inputs, "output": number, "operators": operators, "leaves": []}
        )
        exchanges.append({"id": number, "kind": "shuffle", "producer": number, "partitions": 2, "keys": ["k"]})
    loose = sorted({each["id"] for each in exchanges} - {read for each in made for read in each["inputs"]})
    return {
        "stages": made,
        "exchanges": exchanges,
        "head": {"inputs": loose, "streams": False, "operators": ["SortExec"]},
    }


def started(stage: int, task: int, at: float, attempt: int = 0) -> LogLine:
    return {"event": "task_started", "at": BEGIN + at, "query": "q1", "stage": stage, "task": task, "attempt": attempt}


def running(stage: int, task: int, at: float, attempt: int = 0, worker: str = "w1") -> LogLine:
    return started(stage, task, at, attempt) | {"event": "task_running", "worker": worker}


def finished(
    stage: int, task: int, begun: float, seconds: float = 1.0, attempt: int = 0, worker: str = "w1"
) -> LogLine:
    line = started(stage, task, begun + seconds + 0.1, attempt)
    told = {"rows": 10, "bytes": 1000, "seconds": seconds, "earlier_attempts": 0, "worker": worker}
    return line | {"event": "task_finished", "started_at": BEGIN + begun} | told


def failed(stage: int, task: int, at: float, attempt: int = 0, *, retried: bool = True) -> LogLine:
    told = {"message": "Connection refused", "retried": retried, "worker": "w2", "started_at": BEGIN + at - 0.5}
    return started(stage, task, at, attempt) | {"event": "task_failed"} | told


def ended(at: float = 9.0, **more: Any) -> LogLine:
    return {"event": "query_finished", "at": BEGIN + at, "query": "q1", "rows": 7, "seconds": at, **more}


def metrics(stage: int) -> LogLine:
    operators = [
        {"name": "AggregateExec", "depth": 0, "rows": 10, "compute_seconds": 0.5, "spilled_bytes": 0},
        {"name": "DataSourceExec", "depth": 1, "rows": 100, "compute_seconds": 0.1, "spilled_bytes": 4096},
    ]
    sums = {"rows": 20, "bytes": 1000 * stage, "seconds": 0.1 * stage, "skew": 1.5}
    rest = {"earlier_attempts": 0, "recomputed_inputs": 0, "fetched": [], "operators": operators}
    return {"stage": stage, "tasks": 2, **sums, **rest}


def large_run(stages: int = 30) -> list[LogLine]:
    """A run of many stages on three machines, with a failed attempt, a decision and a feed."""
    tasks = [
        line
        for stage in range(1, stages + 1)
        for task in range(2)
        for line in (started(stage, task, 0.2 * stage), finished(stage, task, 0.2 * stage, 0.3, worker=f"w{stage % 3}"))
    ]
    decided = {
        "event": "skew_decided",
        "at": BEGIN + 2,
        "query": "q1",
        "stage": 3,
        "reason": "too <large>",
        "split": True,
    }
    feed = {"table": "pages", "found": 5, "handed": 5, "done": 5, "replayed": 0, "failed": 0, "waiting": 0}
    feed |= {"most_waiting": 2, "first_unit_seconds": 0.1, "wait_seconds": 0.2, "discovering": False, "provider": {}}
    again = [failed(2, 0, 1.0), started(2, 0, 1.1, 1), finished(2, 0, 1.2, 0.5, 1)]
    sums = [metrics(stage) for stage in range(1, stages + 1)]
    text = "select '</script><img src=x onerror=alert(1)>' -- \u2028"
    return [planned(chain_of(stages), text=text), *tasks, *again, decided, ended(metrics=sums, feeds=[feed])]
