"""Progress on stderr: a line for the query, and one for each running stage. Erased when the query ends; shown only on a
terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkfusion.cli.draw_progress import Canvas, draw
from sparkfusion.observe.progress import Progress

if TYPE_CHECKING:
    from sparkfusion import Session

_REDRAWS_PER_SECOND = 5


class ProgressLines:
    """The progress lines of one session. `stop` may be called several times, for example before rows appear on the same
    terminal."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self.progress = progress
        self._console = console
        self._live: Live | None = None
        self._step = "planning"
        self._began = time.time()

    def start(self) -> None:
        """Show progress of the next query. Does nothing unless stderr is a terminal."""
        self.step("planning")
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                transient=True,
                refresh_per_second=_REDRAWS_PER_SECOND,
                screen=False,
                vertical_overflow="crop",
            )
            self._live.start()

    def step(self, name: str) -> None:
        """Show the name of the current step, until a query is planned. Any thread may call it."""
        self._step = name
        self._began = time.time()
        self.progress.restart()

    def stop(self) -> None:
        """Erase the lines."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _render(self) -> Text:
        # a statement takes longer than its query: a COPY still writes files
        state = replace(self.progress.state, started_at=self._began, ended_at=None)
        size = self._console.size
        canvas = Canvas(size.width, size.height, has_unicode=self._console.encoding.startswith("utf"))
        style = "" if self._console.no_color else "dim"
        return Text("\n".join(draw(state, self._step, canvas, time.time())), style=style, no_wrap=True, overflow="crop")


@contextmanager
def progress_lines(session: Session, console: Console | None = None) -> Iterator[ProgressLines]:
    """Follow the session's queries; the lines are erased however the block ends."""
    lines = ProgressLines(Progress(), console or Console(stderr=True))
    unsubscribe = session.subscribe(lines.progress)
    try:
        yield lines
    finally:
        lines.stop()
        unsubscribe()
