"""Call a function of the user with the progress of each query: `Session.on_progress`."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from sparkfusion.log_fields import about
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

_ENDS = (QueryFinished, QueryFailed)
_ALWAYS_TOLD = (QueryPlanned, QueryRestarted, *_ENDS, StageStarted, StageFinished, StageSkipped)
_END_SECONDS = 5.0
"""How long the end of a query waits until the function has been called. The function itself may be waiting for this
query."""
_log = logging.getLogger("sparkfusion")


class ProgressCalls:
    """A subscriber. The function is called at the beginning and the end of a query and of its stages, and in between at
    most once every `every` seconds. There is one call at a time, in the order of the events.

    There is no clock and no thread here. Times are those of the events, and the thread that delivers an event calls the
    function. Events that other threads deliver meanwhile are left to that thread. No lock is held during a call, so the
    function may run and stop queries. Only the end of a query waits, so that the function is called before `collect`
    returns.
    """

    def __init__(self, function: Callable[[ProgressState], None], every: float) -> None:
        self._function = function
        self._every = every
        self._changed = threading.Condition()
        self._states: dict[str, ProgressState] = {}
        self._told: dict[str, float] = {}
        self._waiting: deque[ProgressState] = deque()
        self._queued = 0
        self._called = 0
        self._caller: int | None = None

    def __call__(self, event: Event) -> None:
        with self._changed:
            state = self._advance(event)
            if state is None:
                return
            self._waiting.append(state)
            self._queued += 1
            if isinstance(event, _ENDS):
                self._wait_for_call(self._queued)
            if self._caller is None:
                self._call_for_all()

    def _advance(self, event: Event) -> ProgressState | None:
        """The state to report after this event; None if there is nothing to report."""
        known = self._states.get(event.query)
        if known is None and not isinstance(event, QueryPlanned):
            return None
        state = advance(known or ProgressState(), event)
        if isinstance(event, _ENDS):
            self._states.pop(event.query, None)
            self._told.pop(event.query, None)
            return state
        self._states[event.query] = state
        if not isinstance(event, _ALWAYS_TOLD) and event.at < self._told[event.query] + self._every:
            return None
        self._told[event.query] = event.at
        return state

    def _wait_for_call(self, number: int) -> None:
        """Wait while another thread still has to report the state with this number. If the function itself runs a
        query, the end of that query is reported later."""
        if self._caller != threading.get_ident():
            self._changed.wait_for(lambda: self._caller is None or self._called >= number, _END_SECONDS)

    def _call_for_all(self) -> None:
        self._caller = threading.get_ident()
        try:
            while self._waiting:
                self._call(self._waiting.popleft())
                self._called += 1
                self._changed.notify_all()
        finally:  # after Ctrl-C the next thread reports the rest
            self._caller = None
            self._changed.notify_all()

    def _call(self, state: ProgressState) -> None:
        """Call the function without the lock. Its error is logged here, because the event may be from another
        thread."""
        self._changed.release()
        try:
            self._function(state)
        except Exception:
            _log.exception("the function of on_progress failed", extra=about(state.query))
        finally:
            self._changed.acquire()
