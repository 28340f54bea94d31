"""The directory of one query in a remote store."""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import re
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import SparkfusionError
from sparkfusion.exchange.owned import DIRECTORY_PREFIX
from sparkfusion.file_systems import classify_errors, open_url
from sparkfusion.ids import QueryId
from sparkfusion.live_objects import LiveObjects
from sparkfusion.runner.spark.transfers import OWNER, write_bytes
from sparkfusion.urls import join, show_url

MAIL = ".mail"
"""The ending of the names of files that are messages between tasks and the coordinator."""
LEFTOVER_AGE = timedelta(days=7)
_HOME = re.compile(rf"{DIRECTORY_PREFIX}[0-9a-f]{{12}}")
_OURS = re.compile(rf"{OWNER}|.+\.arrow|.+{re.escape(MAIL)}")
_log = logging.getLogger("sparkfusion")


class RemoteHome:
    """The directory `<base>/sparkfusion-<query>` of one query. The driver makes and closes it; tasks only know its URL.

    A small file `owner` says which process made it, and that the query is not over. `close` removes this file first,
    then the rest. A cancelled task that is still uploading looks for it afterwards and, if it is gone, removes what it
    uploaded.

    A driver that dies leaves its directory. An object store has no locks, and no process can ask whether a process on
    another machine is alive. So the first home that a process makes below a base removes homes in which nothing was
    written for a week, by the store's own clock, and only if their names and all their files are ours. A query that
    writes nothing for a week would lose its frames. A rule of the bucket that expires old objects works as well.

    On S3 an empty object `<base>/` may stay: that is how Arrow marks a directory.
    """

    def __init__(self, base_url: str, query: QueryId) -> None:
        self.url = join(base_url, f"{DIRECTORY_PREFIX}{query}")
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._system, self._path = open_url(self.url)
        who = {"host": platform.node(), "process": self._process, "started": datetime.now(UTC).isoformat()}
        write_bytes(self.url, OWNER, json.dumps(who).encode())
        _open_homes.add(self)
        _remove_leftovers_once(base_url, self)

    def __repr__(self) -> str:
        return f"RemoteHome({show_url(self.url)!r})"

    def close(self) -> None:
        """Remove everything. Idempotent. An error of the store is only logged: the query has its answer already."""
        with self._lock:
            if self._closed or os.getpid() != self._process:
                return
            self._closed = True
        try:
            with classify_errors(self.url, "remove"):
                with suppress(FileNotFoundError):
                    self._system.delete_file(f"{self._path}/{OWNER}")
                with suppress(FileNotFoundError):
                    self._system.delete_dir(self._path)
        except SparkfusionError as error:
            _log.warning("intermediate data could not be removed: %s", error.message)


# ---- leftovers, and the end of the process

_swept: set[str] = set()
_open_homes: LiveObjects[RemoteHome] = LiveObjects()


def _remove_leftovers_once(base_url: str, home: RemoteHome) -> None:
    """Remove old homes, once in the life of a process. Errors are ignored."""
    if base_url in _swept:
        return
    _swept.add(base_url)
    system, base = open_url(base_url)
    try:
        now = system.get_file_info(f"{home._path}/{OWNER}").mtime
        for found in system.get_file_info(fs.FileSelector(base)):
            if found.type == fs.FileType.Directory and _HOME.fullmatch(found.base_name) and now is not None:
                _remove_if_old(system, found.path, now - LEFTOVER_AGE)
    except (OSError, pa.ArrowException):
        _log.debug("could not look for leftovers in %s", show_url(base_url))


def _remove_if_old(system: fs.FileSystem, path: str, limit: datetime) -> None:
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    files = [info for info in inside if info.type == fs.FileType.File]
    if files and all(_OURS.fullmatch(info.base_name) and info.mtime and info.mtime < limit for info in files):
        system.delete_dir(path)
        _log.info("removed frames that a query left behind: %s", path)


def _end() -> None:
    """Close the homes that are still open. Registered after Arrow's own hook, which ends its S3 client, so this runs
    first."""
    for home in _open_homes:
        home.close()


atexit.register(_end)
