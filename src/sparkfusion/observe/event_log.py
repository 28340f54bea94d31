"""The event log of a session: a file of JSON lines for each query."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sparkfusion.ids import QueryId
from sparkfusion.log_fields import about
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, QueryPlanned
from sparkfusion.observe.log_lines import LineMaker, to_json
from sparkfusion.plan.stage import StageGraph

_log = logging.getLogger("sparkfusion")


class EventLog:
    """A subscriber that writes the events of each query to a file of its own. Any thread may call it.

    A line is written to the operating system before the call returns, so the log is complete up to the moment at which
    a program ends suddenly. If a file cannot be written, one warning is logged, and the query continues without the
    file.

    Args:
        directory: returns the current value of the setting; empty means no log.
        describe: returns where tasks run, in a few words.
    """

    def __init__(self, directory: Callable[[], str], describe: Callable[[StageGraph | None], str]) -> None:
        self._directory = directory
        self._describe = describe
        self._files: dict[QueryId, _QueryLog] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, QueryPlanned) and (directory := self._directory()):
            runner = self._describe(event.graph) if event.graph is not None else ""
            try:
                self._files[event.query] = _QueryLog(event, Path(directory), runner)
            except OSError as error:
                _log.warning("query %s has no event log: %s", event.query, error, extra=about(event.query))
        file = self._files.get(event.query)
        if file is None:
            return
        try:
            file.write(event)
        except OSError as error:
            _log.warning("the event log of query %s ends early: %s", event.query, error, extra=about(event.query))
            self._end(event.query)
        if isinstance(event, QueryFinished | QueryFailed):
            self._end(event.query)

    def close(self) -> None:
        """Close the logs of queries that have not ended. Nobody will read their rows."""
        for query in list(self._files):
            self(QueryFailed(query, "the session was closed before the query ended", cancelled=True))

    def _end(self, query: QueryId) -> None:
        file = self._files.pop(query, None)
        if file is not None:
            file.close()


class _QueryLog:
    """The file of one query."""

    def __init__(self, event: QueryPlanned, directory: Path, runner: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(event.at))
        path = directory / f"{begun}-{event.query}.jsonl"
        self._maker = LineMaker(runner)
        self._lock = threading.Lock()  # two tasks may end at the same time
        self._file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115

    def write(self, event: Event) -> None:
        with self._lock:
            if not self._file.closed:
                line = f"{to_json(self._maker.line_of(event))}\n".encode()
                if self._file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        with self._lock:
            self._file.close()


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read: SQL may hold secrets."""
    return os.open(path, flags, 0o600)
