"""Copy frame files to a remote store and back: tasks write local files and upload them, consumers download what they
need first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import ExternalError, QueryCancelledError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.file_systems import classify_errors, open_url
from sparkfusion.ids import SourceFile
from sparkfusion.urls import bare, join

OWNER = "owner"
"""The file of a query's directory that is there until the query is over."""
WITHOUT_DIRECTORIES = ("s3", "gcs", "abfs")
"""File systems in which a file appears when it is complete, and directories are only parts of names."""
_TRANSFERS = 8
_PIECE_BYTES = 16 * 1024 * 1024
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


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
