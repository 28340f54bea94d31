"""Frame files in a remote store: tasks write local files and upload them, consumers download what they need first."""

from __future__ import annotations

import atexit
import json
import logging
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.exchange.owned import DIRECTORY_PREFIX
from sparkfusion.file_systems import classify_errors, open_url
from sparkfusion.ids import QueryId, SourceFile
from sparkfusion.live_objects import LiveObjects
from sparkfusion.urls import bare, join, show_url

OWNER = "owner"
MAIL = ".mail"
"""The ending of the names of files that are messages between tasks and the coordinator."""
WITHOUT_DIRECTORIES = ("s3", "gcs", "abfs")
"""File systems in which a file appears when it is complete, and directories are only parts of names."""
LEFTOVER_AGE = timedelta(days=7)
_HOME = re.compile(rf"{DIRECTORY_PREFIX}[0-9a-f]{{12}}")
_OURS = re.compile(rf"{OWNER}|.+\.arrow|.+{re.escape(MAIL)}")
_TRANSFERS = 8
_PIECE_BYTES = 16 * 1024 * 1024
_log = logging.getLogger("sparkfusion")
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


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


def upload(files: Sequence[FrameFile], url: str, attempt: str) -> tuple[FrameFile, ...]:
    """Copy an attempt's files below a home's URL. Returns the same files, in their order, with their names there.

    Called by tasks. The names hold no secrets. The local files stay. Uploads of an attempt that failed or was cancelled
    are never read, because no manifest names them; they are removed when the query ends.
    """
    if not files:
        return ()
    place = join(url, attempt)
    system, path = open_url(place)

    def send(file: FrameFile) -> FrameFile:
        name = Path(file.path).name
        with classify_errors(join(place, name), "upload"):
            _copy_out(Path(file.path), system, f"{path}/{name}")
        return replace(file, path=bare(join(place, name)))

    with classify_errors(place, "upload"):
        _make_directory(system, path)
    sent = _in_parallel(send, files)
    if not exists(url, OWNER):
        with suppress(OSError):
            system.delete_dir(open_url(url)[1])
        raise QueryCancelledError("the query has ended")
    return tuple(sent)


def download(files: Sequence[SourceFile], url: str, directory: Path) -> list[SourceFile]:
    """Copy files that `upload` named from below `url`. Returns the same files, in their order, with local paths."""
    system, root = open_url(url)
    home = bare(url)
    targets = {file: directory / _below(home, file.path) for file in files}

    def fetch(file: SourceFile) -> None:
        target = targets[file]
        target.parent.mkdir(parents=True, exist_ok=True)
        with classify_errors(file.path, "download"):
            size = _copy_in(system, f"{root}/{_below(home, file.path)}", target)
        if size != file.size:
            raise ExternalError(f"cannot download {file.path}: it has {size:,} bytes instead of {file.size:,}")

    _in_parallel(fetch, targets)
    return [SourceFile(str(targets[file]), file.size) for file in files]


def write_bytes(url: str, name: str, data: bytes) -> None:
    """Make a small file below a URL."""
    system, path = open_url(url)
    with classify_errors(join(url, name), "write"):
        _make_directory(system, path)
        with system.open_output_stream(f"{path}/{name}") as target:
            target.write(data)


def read_bytes(url: str, name: str) -> bytes:
    """The content of a small file below a URL."""
    system, path = open_url(url)
    with classify_errors(join(url, name), "read"), system.open_input_stream(f"{path}/{name}") as source:
        return bytes(source.read())


def exists(url: str, name: str) -> bool:
    """Whether there is a file of that name below a URL."""
    system, path = open_url(url)
    with classify_errors(join(url, name), "look for"):
        return bool(system.get_file_info(f"{path}/{name}").type == fs.FileType.File)


def _below(home: str, path: str) -> str:
    assert path.startswith(f"{home}/"), f"{path} is not below {home}"
    return path.removeprefix(f"{home}/")


def _copy_out(source: Path, system: fs.FileSystem, path: str) -> None:
    with pa.memory_map(str(source)) as data, system.open_output_stream(path) as target:
        while len(piece := data.read_buffer(_PIECE_BYTES)):
            target.write(piece)


def _copy_in(system: fs.FileSystem, path: str, target: Path) -> int:
    size = 0
    with system.open_input_stream(path) as source, pa.OSFile(str(target), "wb") as local:
        while len(piece := source.read_buffer(_PIECE_BYTES)):
            local.write(piece)
            size += len(piece)
    return size


def _make_directory(system: fs.FileSystem, path: str) -> None:
    if system.type_name not in WITHOUT_DIRECTORIES:
        system.create_dir(path, recursive=True)


def _in_parallel(work: Callable[[_Item], _Made], items: Iterable[_Item]) -> list[_Made]:
    """The results of `work` for every item, a few at a time. After the first error no further item is started."""
    failed = threading.Event()

    def try_work(item: _Item) -> _Made:
        if failed.is_set():
            raise CancelledError
        try:
            return work(item)
        except BaseException:
            failed.set()
            raise

    try:
        with ThreadPoolExecutor(_TRANSFERS, thread_name_prefix="sparkfusion-transfer") as pool:
            futures = [pool.submit(try_work, item) for item in items]
    except BaseException:  # Ctrl-C in this thread
        failed.set()
        raise
    errors = (future.exception() for future in futures)
    for error in errors:
        if error is not None and not isinstance(error, CancelledError):
            raise error
    return [future.result() for future in futures]


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
