"""Evidence that a query was really distributed: the tasks that finished, not the ones that were planned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkfusion.ids import QueryId, StageId
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, TaskFinished
from sparkfusion.verify.subject import VerifiableSession

LAST_EVENT_SECONDS = 5.0
"""How many seconds after the answer the last event may arrive."""


@dataclass
class Evidence:
    """A subscriber for the distributed leg, and a context manager around it. Any thread may deliver events."""

    session: VerifiableSession
    _tasks: dict[QueryId, dict[StageId, set[int]]] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _unsubscribe: Callable[[], None] | None = None

    def __enter__(self) -> Evidence:
        self._unsubscribe = self.session.subscribe(self._see)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()

    def wait(self) -> None:
        """Wait until the query's last event has arrived."""
        self._ended.wait(LAST_EVENT_SECONDS)

    def _see(self, event: Event) -> None:
        if isinstance(event, TaskFinished):
            with self._lock:
                stages = self._tasks.setdefault(event.key.query, {})
                stages.setdefault(event.key.stage, set()).add(event.key.task)
        elif isinstance(event, (QueryFinished, QueryFailed)):
            self._ended.set()

    @property
    def _stages(self) -> dict[StageId, set[int]]:
        """The stages of the query with the most tasks: other queries of the session may run meanwhile."""
        with self._lock:
            return max(self._tasks.values(), key=lambda stages: sum(map(len, stages.values())), default={})

    @property
    def stages(self) -> int:
        return len(self._stages)

    @property
    def tasks(self) -> int:
        return sum(len(tasks) for tasks in self._stages.values())

    @property
    def widest_stage(self) -> int:
        """The most tasks of one stage. With fewer than two, no work was divided."""
        return max((len(tasks) for tasks in self._stages.values()), default=0)
