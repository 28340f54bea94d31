"""Draws the progress of a query for the place below a notebook's cell: a line, a bar, and a row for each stage."""

from __future__ import annotations

import html
from dataclasses import astuple

from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.progress_text import describe, describe_rest, describe_stage_at

_MOST_STAGES = 8
_ENDINGS = {"finished": "done in ", "failed": "failed after ", "cancelled": "stopped after "}
_BOX = '<div style="opacity: 0.8; font-size: 90%">{bar}{text}{stages}</div>'
_BAR = '<progress value="{done}" max="{total}" style="width: 16em; vertical-align: middle"></progress> '
_TABLE = '<table style="margin: 0; border: none">{rows}</table>'
_CELL = '<td style="text-align: left; padding: 0 1em 0 0; border: none">{text}</td>'


def progress_text(state: ProgressState, now: float) -> str:
    """One line.

    >>> progress_text(ProgressState(status="running", planned_stages=2, planned_tasks=8), 3.2)
    '3.2 s  stages 0/2  tasks 0/8  0 rows'
    >>> progress_text(ProgressState(status="finished", ended_at=1.0, reason="it is small"), 3.2)
    'done in 1.0 s  single node'
    """
    return _ENDINGS.get(state.status, "") + describe(state, now)


def progress_html(state: ProgressState, now: float) -> str:
    """The same line, and while the query runs a bar and what its running stages do."""
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
