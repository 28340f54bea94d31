"""A progress line on stderr, erased when the query ends. Shown only on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkfusion.observe.progress import Progress, ProgressState, describe

if TYPE_CHECKING:
    from sparkfusion import Session


class ProgressLine:
    """The line of one session. `stop` may be called early and twice: before rows appear on the same terminal."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self.progress = progress
        self._console = console
        self._live: Live | None = None
        self._step = "planning"

    def start(self) -> None:
        """Show the line for the next query. Does nothing unless stderr is a terminal."""
        self.step("planning")
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, get_renderable=self._render, transient=True, refresh_per_second=8, screen=False
            )
            self._live.start()

    def step(self, name: str) -> None:
        """Show that this goes on now, until a query is planned. From any thread."""
        self._step = name
        self.progress.restart()

    def stop(self) -> None:
        """Erase the line."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _render(self) -> Text:
        shown = _describe(self.progress.state, self._step, time.time())
        return Text(shown, style="dim", no_wrap=True, overflow="ellipsis")


def _describe(state: ProgressState, step: str, now: float) -> str:
    """
    >>> _describe(ProgressState(), "single-node leg", 1.5)
    '1.5 s  single-node leg'
    """
    return f"{state.elapsed(now):.1f} s  {step}" if state.status == "planning" else describe(state, now)


@contextmanager
def progress_line(session: Session, console: Console | None = None) -> Iterator[ProgressLine]:
    """Follow the session's queries; the line is erased however the block ends."""
    line = ProgressLine(Progress(), console or Console(stderr=True))
    unsubscribe = session.subscribe(line.progress)
    try:
        yield line
    finally:
        line.stop()
        unsubscribe()
