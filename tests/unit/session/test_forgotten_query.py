"""A query that nobody refers to any more is closed, but not by the garbage collection itself."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading

import pyarrow as pa

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.observe.events import Event, QueryFailed
from sparkfusion.plan.stage import Head, StageGraph
from sparkfusion.session.query import RunningQuery
from sparkfusion.worker import open_work
from sparkfusion.worker.task import TaskReport
from tests.behaviour.probes import PATIENCE, until


class OpenJob:
    """A job that never gives a row."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def next_frame(self) -> pa.RecordBatch | None:
        raise AssertionError("nobody reads it")

    def cancel(self, reason: str = "") -> None:
        raise AssertionError("nobody cancels it")

    def close(self) -> None:
        self.closed.set()

    def reports(self) -> list[TaskReport]:
        return []

    def graph(self) -> StageGraph | None:
        return None

    def feeds(self) -> list[FeedStats]:
        return []


def test_a_query_may_be_collected_while_a_subscriber_holds_its_lock() -> None:
    """The subscriber allocates memory under its lock. A garbage collection comes, and finds the query."""
    job, lock = OpenJob(), threading.Lock()
    heard: queue.SimpleQueue[Event | str] = queue.SimpleQueue()

    def hear(event: Event) -> None:
        if lock.acquire(timeout=1 if threading.current_thread() is threading.main_thread() else PATIENCE):
            heard.put(event)
            lock.release()
        else:
            heard.put("the lock is held by this very thread")

    running = RunningQuery("q", pa.schema([]), job, Head(()), hear)
    with lock:
        del running
    event = heard.get(timeout=PATIENCE)
    assert isinstance(event, QueryFailed), event
    assert event.cancelled
    assert job.closed.wait(PATIENCE)


def test_a_process_that_ends_waits_for_a_query_that_is_being_closed() -> None:
    reached, go = threading.Event(), threading.Event()

    def hear(event: Event) -> None:
        reached.set()
        if threading.current_thread() is not threading.main_thread():
            go.wait(PATIENCE)

    running = RunningQuery("q", pa.schema([]), OpenJob(), Head(()), hear)
    assert not open_work.is_running()
    del running
    assert reached.wait(PATIENCE)
    assert open_work.is_running()
    go.set()
    until(lambda: not open_work.is_running(), "the end of the closing")


BEGINS = """
import os
import pyarrow as pa
import sparkfusion
from sparkfusion.observe.events import QueryFailed

session = sparkfusion.connect()
session.register_record_batches("t", [[pa.record_batch({"v": [1, 2, 3]})]])
rows = session.sql("select v from t").stream()
"""

ENDS = """
session.subscribe(lambda event: os.write(1, b"told") if isinstance(event, QueryFailed) else None)
"""

FORKS = """
parent = os.getpid()
session.subscribe(lambda event: os.write(1, b"the child told" if os.getpid() != parent else b"the parent told"))
child = os.fork()
if child == 0:
    del rows
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert rows.read_all().num_rows == 3
"""


def output_of(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", BEGINS + program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_a_program_that_ends_tells_the_end_of_its_open_query() -> None:
    """The query is collected when Python starts no threads any more."""
    assert output_of(ENDS) == "told"


def test_a_forked_child_does_not_end_a_query_of_its_parent() -> None:
    """The two would write to one event log."""
    assert output_of(FORKS) == "the parent told"
