"""Fields of log records: the query, stage, task, attempt and worker that a record is about.

Every record of sparkfusion's loggers has all of them as attributes; they are None where they do not apply. So a format
string may name them, and a JSON formatter finds them (docs/observability.md).
"""

from __future__ import annotations

import logging

from sparkfusion.ids import QueryId, StageId, TaskKey

LOGGER = "sparkfusion"
EVENTS_LOGGER = "sparkfusion.events"
FIELDS = ("query", "stage", "task", "attempt", "worker")


def about(
    what: TaskKey | QueryId | None = None, *, stage: StageId | None = None, worker: str | None = None
) -> dict[str, object]:
    """The fields of a record, for the argument `extra` of a logging call.

    >>> about(TaskKey("q", stage=1, task=3), worker="w")
    {'query': 'q', 'stage': 1, 'task': 3, 'attempt': 0, 'worker': 'w'}
    >>> about("q")["stage"] is None
    True
    """
    if isinstance(what, TaskKey):
        where = (what.query, what.stage, what.task, what.attempt)
        return dict(zip(FIELDS, (*where, worker), strict=True))
    return dict(zip(FIELDS, (what, stage, None, None, worker), strict=True))


def _add_missing(record: logging.LogRecord) -> bool:
    for name in FIELDS:
        record.__dict__.setdefault(name, None)
    return True


for _name in (LOGGER, EVENTS_LOGGER):  # a filter of a logger does not see the records of loggers below it
    logging.getLogger(_name).addFilter(_add_missing)
