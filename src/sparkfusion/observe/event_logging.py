"""Events as lines of Python's logging, by the logger `sparkfusion.events`. Every session subscribes it."""

from __future__ import annotations

import logging
from typing import Any

from sparkfusion.ids import TaskKey
from sparkfusion.log_fields import EVENTS_LOGGER, about
from sparkfusion.observe.events import (
    Event,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    StageFinished,
    StageStarted,
    TaskFailed,
    TaskFinished,
)
from sparkfusion.observe.log_lines import event_name

_log = logging.getLogger(EVENTS_LOGGER)
_LEVELS: dict[type[Event], int] = {QueryFinished: logging.INFO, QueryFailed: logging.INFO, TaskFailed: logging.INFO}
_FIGURES = ("stages", "tasks", "rows", "bytes", "seconds", "reason", "retried", "cancelled", "table", "count")


def log_event(event: Event) -> None:
    """Log an event: ends of queries and failed attempts as INFO, all others as DEBUG. SQL is not logged: it may hold
    secrets. An event whose level is off costs nothing."""
    level = _LEVELS.get(type(event), logging.DEBUG)
    if _log.isEnabledFor(level):
        _log.log(level, "%s", _describe(event), extra=fields_of(event))


def fields_of(event: Event) -> dict[str, Any]:
    """The attributes of an event's log record: its query, stage and task, its kind, and its numbers."""
    key: TaskKey | None = getattr(event, "key", None)
    where = about(key or event.query, stage=getattr(event, "stage", None), worker=getattr(event, "worker", None))
    figures = {name: getattr(event, name) for name in _FIGURES if hasattr(event, name)}
    if isinstance(event, TaskFailed | QueryFailed):
        figures["error"] = event.message
    return {**where, "event": event_name(event), **figures}


def _describe(event: Event) -> str:
    match event:
        case QueryPlanned(reason=None):
            return f"query {event.query} is planned: {event.stages} stages, {event.tasks} tasks"
        case QueryPlanned():
            return f"query {event.query} runs on a single node: {event.reason}"
        case QueryFinished():
            return f"query {event.query} finished: {event.rows:,} rows in {event.seconds:.3f} s"
        case QueryFailed():
            return f"query {event.query} {'was cancelled' if event.cancelled else 'failed'}: {event.message}"
        case StageStarted():
            return f"query {event.query}, stage {event.stage} starts with {event.tasks} tasks"
        case StageFinished():
            return f"query {event.query}, stage {event.stage} finished: {event.rows:,} rows, {event.bytes:,} bytes"
        case TaskFinished():
            return f"{event.key} finished: {event.rows:,} rows in {event.seconds:.3f} s"
        case TaskFailed():
            return f"{event.key} failed{', and is retried' if event.retried else ''}: {event.message}"
    where = getattr(event, "key", None) or f"query {event.query}"
    return f"{where}: {event_name(event).replace('_', ' ')}"
