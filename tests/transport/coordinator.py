"""A coordinator in a process of its own: asks workers one question, and prints what came of it as a line of JSON.

    python -m tests.transport.coordinator '{"target": "flight://…", "table": "/a/directory"}'

A target that is a list of addresses makes a `Cluster` whose tasks take turns.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import sparkfusion
from sparkfusion.transport.membership import RoutedTask
from tests.worker_processes import TOKEN

QUESTION = "select k, count(*) as n from t group by k order by k"
HEAD = 0


def ask(target: str | list[str], table: str) -> dict[str, Any]:
    cluster = target if isinstance(target, str) else sparkfusion.Cluster(target, token=TOKEN, routing=take_turns)
    with sparkfusion.connect(cluster, config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("t", table)
        query = session.sql(QUESTION).stream()
        rows = query.read_all().to_pylist()
    on_workers = [report for report in query.reports() if report.key.stage != HEAD]
    fetched = [each.bytes for report in on_workers for each in report.fetched]
    return {"rows": rows, "tasks": len(on_workers), "fetched": fetched}


def take_turns(task: RoutedTask, addresses: Sequence[str]) -> str:
    """Where each of the workers has a free slot, tasks of a stage are on all of them, whatever their speed."""
    return addresses[task.key.task % len(addresses)]


def main() -> None:
    try:
        answer = ask(**json.loads(sys.argv[1]))
    except Exception as error:
        answer = {"raised": type(error).__name__, "says": str(error)}
    print(json.dumps({**answer, "pid": os.getpid()}))


if __name__ == "__main__":
    main()
