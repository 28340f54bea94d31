"""sparkfusion without Spark: in process, in process on two tasks, and on two Flight workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import sparkfusion
from benchmarks.all.backends.base import Ask, Reply, Tables
from sparkfusion.observe.events import Event, StageFinished
from tests.worker_processes import WorkerProcess, url_of

TWO_TASKS = {"sparkfusion.tasks": 2}
ONE_SLOT = ("--slots", "1", "--trust-python")


@contextmanager
def open_local(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    with sparkfusion.connect() as session:
        yield {"local": ask(session, tables)}


@contextmanager
def open_two_tasks(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    with sparkfusion.connect(config=TWO_TASKS) as session:
        yield {"two-tasks": ask(session, tables)}


@contextmanager
def open_flight(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    packages = Path(sparkfusion.__file__).parents[1]  # workers run the same code as we do
    with ExitStack() as stack:
        workers = [
            stack.enter_context(WorkerProcess(home / f"worker-{number}", *ONE_SLOT, packages=packages))
            for number in range(2)
        ]
        session = stack.enter_context(sparkfusion.connect(url_of(workers)))
        yield {"flight": ask(session, tables)}


def ask(session: sparkfusion.Session, tables: Tables) -> Ask:
    """Register the tables, and give what runs a query of that session."""
    for name, directory in tables.items():
        session.register_parquet(name, str(directory))
    written: list[int] = []

    def count(event: Event) -> None:
        if isinstance(event, StageFinished):
            written.append(event.bytes)

    session.subscribe(count)

    def run(sql: str) -> Reply:
        written.clear()
        table = session.sql(sql).collect()
        return Reply(table, sum(written))

    return run
