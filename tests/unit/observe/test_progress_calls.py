"""`ProgressCalls` calls the user's function without a lock, one call at a time, whichever threads bring the events."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from sparkfusion.observe import progress_calls
from sparkfusion.observe.events import Event, QueryFinished, QueryPlanned, StageFinished, StageStarted
from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.progress_calls import ProgressCalls
from tests.behaviour.probes import PATIENCE, PROMPT, until

STARTED = StageStarted("q", 1, 2)
ENDED = QueryFinished("q", rows=1, seconds=1.0)


def planned(query: str = "q") -> QueryPlanned:
    return QueryPlanned(query, stages=1, tasks=2, reason=None, seconds=0.5)


class Watcher:
    """A function for `on_progress` that notes what it is told, and does something of its own first."""

    def __init__(self, act: Callable[[ProgressState], None]) -> None:
        self.told: list[tuple[str, str, int]] = []
        self.calls = ProgressCalls(self._hear, every=0.0)
        self._act = act
        self._busy = threading.Lock()

    def _hear(self, state: ProgressState) -> None:
        if not self._busy.acquire(blocking=False):
            self.told.append(("two calls at once", state.status, state.stages_done))
            return
        try:
            self.told.append((state.query, state.status, state.stages_done))
            self._act(state)
        finally:
            self._busy.release()


def bring(calls: ProgressCalls, *events: Event) -> threading.Thread:
    """A thread that brings events, such as the coordinator of a query."""

    def run() -> None:
        for event in events:
            calls(event)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def is_over(thread: threading.Thread, seconds: float = PROMPT) -> bool:
    thread.join(seconds)
    return not thread.is_alive()


def test_the_function_may_wait_for_threads_that_bring_events() -> None:
    """It does so if it runs a query that is distributed."""
    waited: list[bool] = []

    def run_query(state: ProgressState) -> None:
        if state.query == "q" and not waited:
            watcher.calls(planned("inner"))
            waited.append(is_over(bring(watcher.calls, StageStarted("inner", 1, 2), StageFinished("inner", 1, 3, 3))))
            watcher.calls(QueryFinished("inner", rows=1, seconds=1.0))

    watcher = Watcher(run_query)
    watcher.calls(planned())
    assert waited == [True]
    inner = [("inner", "running", done) for done in (0, 0, 1)]
    assert watcher.told == [("q", "running", 0), *inner, ("inner", "finished", 1)]


def test_a_query_has_ended_for_the_function_when_it_ends_for_its_reader() -> None:
    at_end: list[str] = []

    def read() -> None:
        watcher.calls(ENDED)
        at_end.append(watcher.told[-1][1])

    reader = threading.Thread(target=read, daemon=True)

    def start_reader(state: ProgressState) -> None:
        if state.stages_done:
            reader.start()
            until(lambda: bool(watcher.calls._waiting), "the reader's event")

    watcher = Watcher(start_reader)
    assert is_over(bring(watcher.calls, planned(), STARTED, StageFinished("q", 1, 3, 3)), PATIENCE)
    assert is_over(reader, PATIENCE)
    assert at_end == ["finished"]


def test_the_end_of_a_query_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function waits for the thread that reads the query."""
    monkeypatch.setattr(progress_calls, "_END_SECONDS", 0.01)
    ended: list[bool] = []

    def wait_for_end(state: ProgressState) -> None:
        if not ended:
            ended.append(is_over(bring(watcher.calls, ENDED)))

    watcher = Watcher(wait_for_end)
    watcher.calls(planned())
    assert ended == [True]
    assert [status for _, status, _ in watcher.told] == ["running", "finished"]


def test_a_function_that_fails_is_told_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    def fail(state: ProgressState) -> None:
        if state.status == "running":
            watcher.calls(ENDED)
            raise ValueError("mine")

    watcher = Watcher(fail)
    with caplog.at_level(logging.ERROR, "sparkfusion"):
        watcher.calls(planned())
    assert [status for _, status, _ in watcher.told] == ["running", "finished"]
    assert [(record.message, record.__dict__["query"]) for record in caplog.records] == [
        ("the function of on_progress failed", "q")
    ]


def test_a_function_that_is_interrupted_is_called_again() -> None:
    def interrupt(state: ProgressState) -> None:
        if not state.stages_done:
            raise KeyboardInterrupt

    watcher = Watcher(interrupt)
    with pytest.raises(KeyboardInterrupt):
        watcher.calls(planned())
    watcher.calls(StageFinished("q", 1, 3, 3))
    assert [done for _, _, done in watcher.told] == [0, 1]
