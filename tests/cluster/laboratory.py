"""Runs experiments on the cluster, in the cluster's process, and finds out what happened."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

import sparkfusion
from sparkfusion import Session
from sparkfusion.observe.events import Event, StageFinished, TaskFailed
from tests.cluster.experiment import Answer, Ended, Experiment, Failure, Report
from tests.cluster.probes import Notebook, executor_pid, kill_executor, probe
from tests.cluster.standalone import WORKERS
from tests.cluster.tables import rows_of
from tests.suites.fed import RowGroupsOf

PATIENCE = 150.0
"""Seconds until a wait gives up. Only paid by a test that fails."""
PROMPT = 60.0
"""Seconds for what is going away when a query has ended."""


class Laboratory:
    """The cluster as experiments use it. One thread; between two experiments both executors are there and idle.

    Args:
        cores: of each executor.
    """

    def __init__(self, spark: SparkSession, home: Path, cores: int) -> None:
        self._spark = spark
        self._tasks = len(WORKERS) * cores
        self._home = home
        self._frames = home / "frames"
        self._numbers = itertools.count()
        self._log_read = 0
        self._fence = ""
        self._executors = self._meet()
        self._new_log_entries()
        self._files_before = self._files()

    def run(self, experiment: Experiment) -> Answer:
        place = self._home / f"experiment-{next(self._numbers)}"
        place.mkdir()
        notebook = Notebook(str(place))
        config = {"sparkfusion.small_stage_bytes": 0, **experiment.config, "sparkfusion.store": experiment.store}
        if experiment.store == "shared":
            config["sparkfusion.store_dir"] = str(self._frames)
        before = self._executors
        try:
            with sparkfusion.connect(self._spark, config=config) as session:
                _prepare(session, experiment, notebook)
                watcher = _Watcher(experiment, notebook)
                session.subscribe(watcher)
                outcome = _read(session, experiment, notebook)
                if experiment.workers:
                    _wait_for_workers(session, experiment)
                place_shown = _place_of(session, experiment)
            left = self._left_behind(PROMPT)
        finally:
            notebook.release()
            self._executors = self._meet()
            calls = notebook.calls()
            ended = list(ended_attempts(self._new_log_entries()))
            shutil.rmtree(place)
        return Answer(
            rows=outcome.rows,
            error=outcome.error,
            seconds=outcome.seconds,
            seconds_after_cancel=outcome.seconds_after_cancel,
            executors=before,
            killed=watcher.killed or next(iter(set(before) - set(self._executors)), None),
            calls=calls,
            ended=ended,
            failures=watcher.failures,
            reports=outcome.reports,
            left=left + self._left_behind(PROMPT),  # a task that was given up may have gone on
            place=place_shown,
        )

    def _meet(self) -> list[int]:
        """Wait until both executors are there, with a Python worker each, and nothing else runs on them.

        As many tasks as run at once wait for each other, so they are on both; and what Spark logs of their job comes
        after everything that happened before.
        """
        place = self._home / f"meeting-{next(self._numbers)}"
        place.mkdir()
        self._fence = place.name
        context = self._spark.sparkContext
        context.setJobDescription(self._fence)
        found: list[int] = (
            context.parallelize([str(place)] * self._tasks, self._tasks).mapPartitions(_wait_for_each_other).collect()
        )
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        shutil.rmtree(place)
        return sorted(set(found))

    def _new_log_entries(self) -> list[dict[str, Any]]:
        """What Spark logged from the end of the meeting before the last to the end of the last one."""
        (log,) = (self._home / "events").iterdir()
        entries: list[dict[str, Any]] = []
        with open(log, "rb") as file:
            file.seek(self._log_read)

            def complete() -> bool:
                position = file.tell()
                for line in file:
                    if not line.endswith(b"\n"):
                        file.seek(position)
                        return False
                    position += len(line)
                    entries.append(json.loads(line))
                    if _is_end_of(self._fence, entries):
                        self._log_read = position
                        return True
                return False

            _until(complete, "Spark has logged its jobs")
        return entries

    def _left_behind(self, seconds: float) -> list[str]:
        """Jobs and files of the query that are still there so long after it is over."""
        tracker = self._spark.sparkContext.statusTracker()

        def left() -> list[str]:
            jobs = [f"Spark job {job}" for job in tracker.getActiveJobsIds()]
            return jobs + [f"file {path}" for path in self._files() - self._files_before]

        deadline = time.monotonic() + seconds
        while (found := left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def _files(self) -> set[Path]:
        """Of queries: in the shared store, and where temporary files of driver and executors go.

        Not in Spark's own directories: what a killed executor had there goes when Spark ends.
        """
        found = {*self._frames.iterdir(), *(self._home / "tmp").glob("sparkfusion-*")}
        return found | set(Path("/dev/shm").glob(f"sparkfusion-{os.getpid()}-*"))


def ended_attempts(entries: Iterable[dict[str, Any]]) -> Iterator[Ended]:
    """Every end of an attempt in an event log, but for those of the meetings."""
    meetings: set[int] = set()
    for event in entries:
        match event["Event"]:
            case "SparkListenerJobStart" if _description(event).startswith("meeting"):
                meetings.update(event["Stage IDs"])
            case "SparkListenerTaskEnd" if event["Stage ID"] not in meetings:
                task = event["Task Info"]
                yield Ended(
                    stage=event["Stage ID"],
                    stage_attempt=event["Stage Attempt ID"],
                    task=task["Index"],
                    attempt=task["Task ID"],
                    reason=event["Task End Reason"]["Reason"],
                    speculative=task["Speculative"],
                )


def _description(job: dict[str, Any]) -> str:
    return str(job["Properties"].get("spark.job.description", ""))


def _is_end_of(description: str, entries: list[dict[str, Any]]) -> bool:
    """Whether the last entry is the end of the job with that description."""
    if entries[-1]["Event"] != "SparkListenerJobEnd":
        return False
    starts = [entry for entry in entries if entry["Event"] == "SparkListenerJobStart"]
    return any(s["Job ID"] == entries[-1]["Job ID"] and _description(s) == description for s in starts)


class _Watcher:
    """A subscriber that notes failures and kills an executor at its time."""

    def __init__(self, experiment: Experiment, notebook: Notebook) -> None:
        self._experiment = experiment
        self._notebook = notebook
        self.failures: list[Failure] = []
        self.killed: int | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case TaskFailed():
                self.failures.append(Failure(event.key.stage, event.key.task, event.retried, event.message))
            case StageFinished() if event.stage == self._experiment.kill_after_stage and self.killed is None:
                self.killed = self._notebook.calls()[-1].executor
                kill_executor(self.killed)


@dataclass
class _Outcome:
    """How a query ended for its reader."""

    rows: list[list[Any]] = field(default_factory=list)
    error: str | None = None
    seconds: float = 0.0
    seconds_after_cancel: float | None = None
    reports: list[Report] = field(default_factory=list)


def _read(session: Session, experiment: Experiment, notebook: Notebook) -> _Outcome:
    frame = session.sql(experiment.sql)
    distribution = frame.distribution()
    if not distribution.distributed:
        return _Outcome(error=f"not distributed: {distribution.reason}")
    outcome = _Outcome()
    started = cancelled = time.monotonic()
    with frame.stream() as query:
        try:
            if experiment.cancel_at is not None:
                _wait_for_held(experiment.cancel_at, notebook)
                cancelled = time.monotonic()
                query.cancel()
            outcome.rows = rows_of(query)
        except sparkfusion.SparkfusionError as raised:
            outcome.error = f"{type(raised).__name__}: {raised}"
    outcome.seconds = time.monotonic() - started
    if experiment.cancel_at is not None:
        outcome.seconds_after_cancel = time.monotonic() - cancelled
    outcome.reports = [
        Report(report.key.stage, report.key.task, report.rows, report.earlier_attempts, report.recomputed_inputs)
        for report in query.reports()
    ]
    return outcome


def _prepare(session: Session, experiment: Experiment, notebook: Notebook) -> None:
    for name, directory in experiment.tables.items():
        if experiment.fed:
            session.register_feed(name, RowGroupsOf(Path(directory)), format="parquet")
        else:
            session.register_parquet(name, directory)
    for name, fault in experiment.functions.items():
        session.register_udf(probe(name, fault, notebook))


def _place_of(session: Session, experiment: Experiment) -> str:
    shown = session.sql(f"explain {experiment.sql}").collect()["plan"].to_pylist()[-1]
    return str(shown.splitlines()[0])


def _wait_for_workers(session: Session, experiment: Experiment) -> None:
    def enough() -> bool:
        session.sql(experiment.sql).collect()
        return f"on {experiment.workers} resident workers" in _place_of(session, experiment)

    _until(enough, f"{experiment.workers} resident workers serve")


def _wait_for_held(tasks: int, notebook: Notebook) -> None:
    def held() -> bool:
        return len({call.attempt for call in notebook.calls() if call.faulty}) >= tasks

    _until(held, f"{tasks} tasks are held")


def _wait_for_each_other(places: Iterable[str]) -> Iterator[int]:
    """In a task: return when the other one is there too. Imports what the tasks of queries will need."""
    import sparkfusion.runner.spark.body  # noqa: F401

    for place in map(Path, places):
        me = executor_pid()
        (place / str(me)).touch()
        _until(functools.partial(_both_are_in, place), "the other executor is there")
        yield me


def _both_are_in(place: Path) -> bool:
    """One that was killed after it came does not count."""
    return sum(psutil.pid_exists(int(each.name)) for each in place.iterdir()) >= len(WORKERS)


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for this: {what}"
        time.sleep(0.02)
