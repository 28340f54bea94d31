"""Progress below a notebook's cell, for queries that take longer than a moment."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparkfusion.extras import import_extra
from sparkfusion.notebook.cell_progress import progress_html, progress_text
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, QueryPlanned
from sparkfusion.observe.progress import ProgressState, advance

if TYPE_CHECKING:
    from sparkfusion.session.session import Session

_SHOWN_AFTER = 0.7
"""Seconds. A quick query shows its rows only."""
_INTERVAL = 0.3
_PATIENCE = 5.0

Bundle = dict[str, str]
Publish = Callable[[Bundle, str, bool], None]
"""Shows what has the id, or shows it again instead of what it showed. Called from threads of ours."""


def show_progress(
    session: Session, *, shown_after: float = _SHOWN_AFTER, publish: Publish | None = None
) -> Callable[[], None]:
    """Show how far the session's queries are, below the cells that run them. Call the returned function to end that.

    A query that takes longer than `shown_after` seconds gets a line, which is drawn again while it runs. At its end
    the line says how long it took. Outside of a notebook, in a plain IPython for example, nothing is shown.
    """
    if publish is None:
        shell = import_extra("IPython", "notebook", "show_progress").get_ipython()
        if getattr(shell, "kernel", None) is None:
            return lambda: None
        publish = _publish
    return session.subscribe(ProgressBelowCells(publish, shown_after))


class ProgressBelowCells:
    """A subscriber with a thread for each query that runs. The thread ends with the query."""

    def __init__(self, publish: Publish, shown_after: float) -> None:
        self._publish = publish
        self._shown_after = shown_after
        self._lock = threading.Lock()
        self._running: dict[str, _Line] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, QueryPlanned):
            line = _Line(event, self._publish, self._shown_after)
            with self._lock:
                self._running[event.query] = line
            line.start()
            return
        over = isinstance(event, QueryFinished | QueryFailed)
        with self._lock:
            found = self._running.pop(event.query, None) if over else self._running.get(event.query)
        if found is not None:
            found.add(event)
            if over:
                found.end()


class _Line:
    """The line of one query."""

    def __init__(self, planned: QueryPlanned, publish: Publish, shown_after: float) -> None:
        self._id = f"sparkfusion-{planned.query}"
        self._publish = publish
        self._shown_after = shown_after
        self._state = advance(ProgressState(), planned)
        self._lock = threading.Lock()
        self._over = threading.Event()
        # What a thread shows belongs to the cell of its context: this is called in the cell that runs the query.
        draw = contextvars.copy_context().run
        self._thread = threading.Thread(target=draw, args=(self._draw,), name="sparkfusion-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, event: Event) -> None:
        with self._lock:
            self._state = advance(self._state, event)

    def end(self) -> None:
        """Wait until the last state is drawn, so that it is drawn below its cell."""
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)

    def _draw(self) -> None:
        if self._over.wait(self._shown_after):
            return
        again = False
        while not self._over.wait(_INTERVAL if again else 0):
            self._publish(self._bundle(), self._id, again)
            again = True
        self._publish(self._bundle(), self._id, again)

    def _bundle(self) -> Bundle:
        with self._lock:
            state = self._state
        now = time.time()
        return {"text/plain": progress_text(state, now), "text/html": progress_html(state, now)}


def _publish(bundle: Bundle, id: str, again: bool) -> None:
    display: Any = import_extra("IPython.display", "notebook", "show_progress")
    display.publish_display_data(bundle, transient={"display_id": id}, update=again)
