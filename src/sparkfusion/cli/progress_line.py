"""One line on stderr that tells how far the query is, gone when it ends. Only where a person sees it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sparkfusion.observe.progress import Progress, describe

if TYPE_CHECKING:
    from sparkfusion import Session


class ProgressLine:
    """The line of one session. `stop` may be called early and twice: before rows appear on the same terminal."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self.progress = progress
        self._console = console
        self._live: Live | None = None

    def start(self) -> None:
        """Show the line for the next query. Does nothing unless stderr is a terminal."""
        self.progress.restart()
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console, get_renderable=self._render, transient=True, refresh_per_second=8, screen=False
            )
            self._live.start()

    def stop(self) -> None:
        """Erase the line."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _render(self) -> Text:
        return Text(describe(self.progress.state, time.time()), style="dim", no_wrap=True, overflow="ellipsis")


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
