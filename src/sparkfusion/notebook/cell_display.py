"""Progress below a notebook's cell, for queries that are not finished at once: a line, a bar, a row for each stage."""

from __future__ import annotations

import contextvars
import html
import threading
import time
from collections.abc import Callable
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from sparkfusion.extras import import_extra
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, QueryPlanned
from sparkfusion.observe.progress import ProgressState, advance
from sparkfusion.observe.progress_text import describe, describe_rest, describe_stage_at

if TYPE_CHECKING:
    from sparkfusion.session.session import Session

_SHOWN_AFTER = 0.7
"""Seconds before progress is shown, so that a quick query shows only its rows."""
_INTERVAL = 0.3
_PATIENCE = 5.0
_MOST_STAGES = 8
_ENDINGS = {"finished": "done in ", "failed": "failed after ", "cancelled": "stopped after "}
_BOX = '<div style="opacity: 0.8; font-size: 90%">{bar}{text}{stages}</div>'
_BAR = '<progress value="{done}" max="{total}" style="width: 16em; vertical-align: middle"></progress> '
_TABLE = '<table style="margin: 0; border: none">{rows}</table>'
_CELL = '<td style="text-align: left; padding: 0 1em 0 0; border: none">{text}</td>'

Bundle = dict[str, str]
Publish = Callable[[Bundle, str, bool], None]
"""(content, id, again): shows the content under the id; with `again`, replaces the content that is shown. Called from
threads of sparkfusion."""


def show_progress(
    session: Session, *, shown_after: float = _SHOWN_AFTER, publish: Publish | None = None
) -> Callable[[], None]:
    """Show the progress of the session's queries below the cells that run them, until the returned function is called.

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
        # Output of a thread is shown below the cell of its context. This code runs in the cell that runs the query.
        draw = contextvars.copy_context().run
        self._thread = threading.Thread(target=draw, args=(self._draw,), name="sparkfusion-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, event: Event) -> None:
        with self._lock:
            self._state = advance(self._state, event)

    def end(self) -> None:
        """Wait until the last state is drawn, so that it appears below its cell."""
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


def progress_text(state: ProgressState, now: float) -> str:
    """One line.

    >>> progress_text(ProgressState(status="running", planned_stages=2, planned_tasks=8), 3.2)
    '3.2 s  stages 0/2  tasks 0/8  0 rows'
    >>> progress_text(ProgressState(status="finished", ended_at=1.0, reason="it is small"), 3.2)
    'done in 1.0 s  single node'
    """
    return _ENDINGS.get(state.status, "") + describe(state, now)


def progress_html(state: ProgressState, now: float) -> str:
    """The same line as HTML. While the query runs, also a bar and the running stages."""
    is_drawn = state.status == "running" and state.tasks_total > 0
    bar = _BAR.format(done=state.tasks_done, total=state.tasks_total) if is_drawn else ""
    stages = _stages(state, now) if is_drawn else ""
    return _BOX.format(bar=bar, text=html.escape(progress_text(state, now)), stages=stages)


def _stages(state: ProgressState, now: float) -> str:
    shown = state.busy_stages[:_MOST_STAGES]
    rows = [astuple(describe_stage_at(state, stage, now)) for stage in shown]
    if rest := describe_rest(state, len(shown)):
        rows.append((rest,))
    drawn = ("".join(_CELL.format(text=html.escape(text)) for text in row if text) for row in rows)
    return _TABLE.format(rows="".join(f"<tr>{cells}</tr>" for cells in drawn)) if rows else ""
