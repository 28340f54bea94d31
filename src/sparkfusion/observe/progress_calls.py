"""Calls a function of the user with the progress of each query: `Session.on_progress`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sparkfusion.observe.events import (
    Event,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    QueryRestarted,
    StageFinished,
    StageSkipped,
    StageStarted,
)
from sparkfusion.observe.progress import ProgressState, advance

_ALWAYS_TOLD = (QueryPlanned, QueryRestarted, QueryFinished, QueryFailed, StageStarted, StageFinished, StageSkipped)


class ProgressCalls:
    """A subscriber. The function is called at the beginning and the end of a query and of its stages, and in between at
    most every so many seconds. One call at a time, in the order of the events.

    It has no clock and no thread: time is that of the events.
    """

    def __init__(self, function: Callable[[ProgressState], None], every: float) -> None:
        self._function = function
        self._every = every
        self._lock = threading.RLock()  # the function may run a query
        self._states: dict[str, ProgressState] = {}
        self._told: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        with self._lock:
            known = self._states.get(event.query)
            if known is None and not isinstance(event, QueryPlanned):
                return
            state = advance(known or ProgressState(), event)
            if isinstance(event, QueryFinished | QueryFailed):
                self._states.pop(event.query, None)
                self._told.pop(event.query, None)
            else:
                self._states[event.query] = state
                if not isinstance(event, _ALWAYS_TOLD) and event.at < self._told[event.query] + self._every:
                    return
                self._told[event.query] = event.at
            self._function(state)
