from __future__ import annotations

import io
from collections.abc import Callable
from typing import cast

import pytest
from rich.console import Console

from sparkfusion import Session
from sparkfusion.cli.progress_lines import progress_lines
from sparkfusion.observe.events import QueryFinished, QueryPlanned, StageStarted, Subscriber


class EventSource:
    """The part of a session that the line needs."""

    def __init__(self) -> None:
        self.subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_line_is_drawn_on_terminals_only_and_erased(terminal: bool) -> None:
    source = EventSource()
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=terminal, width=80)
    with progress_lines(cast(Session, source), console) as line:
        line.start()
        for subscriber in source.subscribers:
            subscriber(QueryPlanned("q", stages=2, tasks=6, reason=None, seconds=0.0))
            subscriber(StageStarted("q", 1, 3))
        line.stop()
        line.stop()
        assert ("stages 0/2  tasks 0/6  0 rows" in shown.getvalue()) is terminal
        if terminal:
            assert "stage 1" in shown.getvalue()
            assert shown.getvalue().endswith("\x1b[1A\x1b[2K" * 2), "both lines are erased"
        else:
            assert shown.getvalue() == ""
    assert source.subscribers == []


def test_a_step_is_shown_until_a_query_is_planned() -> None:
    source = EventSource()
    shown = io.StringIO()
    with progress_lines(cast(Session, source), Console(file=shown, force_terminal=True, width=80)) as line:
        line.start()
        line.step("single-node leg")
        line.stop()
    assert "0.0 s  single-node leg" in shown.getvalue()


def test_the_clock_is_that_of_the_statement() -> None:
    """It goes on when the query has ended: a COPY still writes files."""
    source = EventSource()
    shown = io.StringIO()
    with progress_lines(cast(Session, source), Console(file=shown, force_terminal=True, width=80)) as line:
        line.start()
        for subscriber in source.subscribers:
            subscriber(QueryPlanned("q", stages=2, tasks=6, reason=None, seconds=500.0))
            subscriber(QueryFinished("q", rows=1, seconds=500.0))
        line.stop()
    assert " s  stages 0/2" in shown.getvalue()
    assert "500.0 s" not in shown.getvalue()


def test_a_failure_erases_the_line_and_ends_the_subscription() -> None:
    source = EventSource()
    shown = io.StringIO()

    def fail() -> None:
        with progress_lines(cast(Session, source), Console(file=shown, force_terminal=True, width=80)) as line:
            line.start()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert source.subscribers == []
    assert shown.getvalue().endswith("\x1b[1A\x1b[2K")


def test_without_colours_nothing_is_styled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = io.StringIO()
    with progress_lines(cast(Session, EventSource()), Console(file=shown, force_terminal=True, width=80)) as line:
        line.start()
        line.stop()
    assert "planning" in shown.getvalue()
    assert "m" not in shown.getvalue().replace("planning", "").replace("s  ", ""), "no SGR sequence"
