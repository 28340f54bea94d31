"""The line below a cell: what it says at each moment, and that its thread ends with the query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import reduce

import pytest

import sparkfusion
from sparkfusion import Session
from sparkfusion.ids import TaskKey
from sparkfusion.notebook.cell_display import (
    Bundle,
    ProgressBelowCells,
    progress_html,
    progress_text,
    show_progress,
)
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, QueryPlanned, StageStarted, TaskFinished
from sparkfusion.observe.progress import ProgressState, advance

PLANNED = QueryPlanned("q", 2, 6, None, 0.5, at=100.5)


def finished(stage: int, task: int) -> TaskFinished:
    return TaskFinished("q", TaskKey("q", stage, task, 0), 10, 80, 0.1)


def after(*events: Event) -> ProgressState:
    return reduce(advance, (PLANNED, *events), ProgressState())


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "2.0 s  stages 0/2  tasks 0/6  0 rows"),
        ([StageStarted("q", 1, 4), finished(1, 0)], "2.0 s  stages 0/2  tasks 1/6  10 rows"),
        ([finished(1, 0), QueryFinished("q", 1, 1.0, at=101.0)], "done in 1.0 s  stages 0/2  tasks 1/6  10 rows"),
        ([QueryFailed("q", "no", cancelled=False, at=101.0)], "failed after 1.0 s  stages 0/2  tasks 0/6  0 rows"),
        ([QueryFailed("q", "no", cancelled=True, at=101.0)], "stopped after 1.0 s  stages 0/2  tasks 0/6  0 rows"),
    ],
)
def test_the_line_says_how_far_the_query_is(events: list[Event], said: str) -> None:
    state = after(*events)
    assert progress_text(state, 102.0) == said
    assert said in progress_html(state, 102.0)


def test_running_stages_have_a_row_each() -> None:
    drawn = progress_html(after(*(StageStarted("q", number, 2) for number in range(1, 11))), 102.0)
    assert drawn.count("<tr>") == 8 + 1
    assert "stage 1<" in drawn
    assert "0/2 tasks" in drawn
    assert "stages: 2 more running" in drawn


def test_a_query_that_is_over_has_no_bar_and_no_stages() -> None:
    running = after(StageStarted("q", 1, 4))
    assert "<progress" in progress_html(running, 102.0)
    ended = progress_html(after(StageStarted("q", 1, 4), QueryFinished("q", 7, 1.0)), 102.0)
    assert "<progress" not in ended
    assert "stage 1<" not in ended


def test_a_query_on_a_single_node_has_no_bar() -> None:
    state = advance(ProgressState(), QueryPlanned("q", 0, 0, "it is small", 0.0, at=1.0))
    assert progress_text(state, 3.0) == "2.0 s  single node"
    assert "<progress" not in progress_html(state, 3.0)


class _Page:
    """Takes what is published, and lets a test wait for it."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, bool]] = []
        self.has_drawn = threading.Event()

    def __call__(self, bundle: Bundle, id: str, again: bool) -> None:
        self.drawn.append((bundle["text/plain"], again))
        self.has_drawn.set()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "sparkfusion-progress"]


def test_the_line_is_drawn_until_the_query_ends() -> None:
    page = _Page()
    shown = ProgressBelowCells(page, shown_after=0.0)
    shown(PLANNED)
    assert page.has_drawn.wait(60)
    shown(finished(1, 0))
    shown(QueryFinished("another", 1, 1.0))
    assert len(threads()) == 1
    shown(QueryFinished("q", 7, 1.0, at=102.0))
    assert threads() == []
    assert page.drawn[0][1] is False
    assert all(again for _, again in page.drawn[1:])
    assert page.drawn[-1][0] == "done in 2.0 s  stages 0/2  tasks 1/6  10 rows"


def test_a_quick_query_draws_nothing() -> None:
    page = _Page()
    shown = ProgressBelowCells(page, shown_after=600.0)
    shown(PLANNED)
    shown(QueryFinished("q", 7, 1.0))
    assert threads() == []
    assert page.drawn == []


def test_progress_of_a_session_can_be_ended() -> None:
    page = _Page()
    with sparkfusion.connect() as session:
        stop = show_progress(session, shown_after=0.0, publish=page)
        session.sql("select 1").collect()
        seen = len(page.drawn)
        stop()
        session.sql("select 1").collect()
    assert len(page.drawn) == seen


def test_nothing_is_shown_outside_of_a_notebook(subscribe: Callable[[Session], list[object]]) -> None:
    with sparkfusion.connect() as session:
        subscribed = subscribe(session)
        show_progress(session)()
        assert subscribed == []


@pytest.fixture
def subscribe(monkeypatch: pytest.MonkeyPatch) -> Callable[[Session], list[object]]:
    """Who subscribes to a session from now on."""

    def watch(session: Session) -> list[object]:
        seen: list[object] = []
        monkeypatch.setattr(session, "subscribe", seen.append)
        return seen

    return watch
