"""Modes of writing: what happens to existing data. New rows are written beside it, and moved there when complete."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import QueryId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import RunningJob
from sparkfusion.session.external_statement import cut_option
from sparkfusion.urls import is_url, plain_path
from sparkfusion.worker.task import TaskReport

WriteMode = Literal["append", "overwrite", "error", "ignore"]
"""`append` adds files to a directory, `overwrite` replaces what is there, `error` and `ignore` leave it alone."""

_MODE = "sparkfusion.mode"
_CURRENT_DIRECTORY = -100
_EXCHANGE = 2


def check_mode(mode: str) -> WriteMode:
    for known in get_args(WriteMode):
        if mode == known:
            return known  # type: ignore[no-any-return]
    raise UserError(f"unknown write mode {mode!r}", hint=f"one of {', '.join(get_args(WriteMode))}")


def refuse_mode(mode: str | None) -> None:
    """Refuse a mode for a write that DataFusion does by itself."""
    if mode is not None:
        raise UserError(
            f"mode={mode!r} cannot be combined with DataFusion's own writer options",
            hint="leave out one of them; compression and partition_by have arguments of their own",
        )


def split_mode(tail: str) -> tuple[str, WriteMode | None]:
    """The tail of a COPY without our option, and the mode that it names.

    >>> split_mode("TO 'x' STORED AS CSV OPTIONS ('sparkfusion.mode' 'overwrite')")
    ("TO 'x' STORED AS CSV", 'overwrite')
    >>> split_mode("TO 'x' OPTIONS (format.has_header true, sparkfusion.mode ignore)")
    ("TO 'x' OPTIONS (format.has_header true)", 'ignore')
    >>> split_mode("TO 'x' OPTIONS ('format.null_value' 'sparkfusion.mode ignore')")[1] is None
    True
    """
    rest, mode = cut_option(tail, _MODE)
    return rest, check_mode(mode.lower()) if mode is not None else None


class PendingWrite:
    """Where the rows of one write go first. Either `commit` moves them to the target, or `abandon` removes them."""

    def __init__(self, path: str) -> None:
        self.path = path

    def commit(self) -> None:
        """Nothing to do: they were written to the target."""

    def abandon(self) -> None:
        """Nothing is left to remove."""


class _Aside(PendingWrite):
    """A new directory beside the target."""

    def __init__(self, query: QueryId, target: Path, *, replaces: bool = False) -> None:
        self._made = [path for path in target.parents if not path.exists()]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._owned = OwnedDirectory(query, target.parent)
        except OSError as error:
            raise UserError(f"cannot write {str(target)!r}: {error.strerror}") from error
        self._new = self._owned.path / "rows"
        self._new.mkdir()
        self._target = target
        self._replaces = replaces
        super().__init__(f"{self._new}/")

    def commit(self) -> None:
        try:
            if self._replaces and self._target.exists():
                shutil.copymode(self._target, self._new)
                _swap(self._new, self._target)
            else:
                self._new.rename(self._target)
            self._made = []
        except OSError as error:
            raise UserError(f"cannot replace {str(self._target)!r}: {error.strerror}") from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        self._owned.close()
        for path in self._made:
            with suppress(OSError):
                path.rmdir()


class _Added(_Aside):
    """A new directory beside the target, whose files are added to those of the target."""

    def commit(self) -> None:
        try:
            self._target.mkdir(parents=True, exist_ok=True)
            for file in sorted(path for path in self._new.rglob("*") if path.is_file()):
                destination = self._target / file.relative_to(self._new)
                destination.parent.mkdir(parents=True, exist_ok=True)
                move(file, destination)
            self._made = []
        except OSError as error:
            raise UserError(f"cannot move the written files into {str(self._target)!r}: {error.strerror}") from error
        finally:
            self.abandon()


def prepare_write(
    path: str,
    mode: WriteMode | None,
    query: QueryId,
    *,
    directory: bool,
    in_place: bool,
    has_files: Callable[[str], bool],
) -> PendingWrite | None:
    """Where a write puts its rows; None if there is nothing to write. A `UserError` if the mode forbids it.

    Args:
        directory: whether the path means a directory.
        in_place: whether files may be added directly to the target, because they are written only when all are
            complete.
        has_files: whether there is something at the URL of an object store.
    """
    if is_url(path):
        return _prepare_remote(path, mode, has_files)
    target = Path(plain_path(path)).absolute()
    target = target.resolve() if target.is_symlink() else target
    exists = any(target.iterdir()) if target.is_dir() else target.exists()
    if exists and mode == "ignore":
        return None
    if exists and mode == "error":
        raise UserError(f"{path!r} exists", hint="mode='overwrite' replaces it, mode='append' adds to a directory")
    if not directory and exists and mode == "append":
        raise UserError(f"cannot append to the file {path!r}", hint="write a directory, or use mode='overwrite'")
    adds = mode is None or mode == "append"
    if directory and adds and not in_place and _takes_neighbours(target):
        return _Added(query, target)
    if not directory or adds:
        return PendingWrite(path)
    if target.is_file():
        raise UserError(f"cannot write the directory {path!r}: it is a file")
    if target.is_mount():
        raise UserError(f"cannot replace {path!r}: a file system is mounted there", hint="write a directory below it")
    return _Aside(query, target, replaces=mode == "overwrite" or target.is_dir())


def _takes_neighbours(target: Path) -> bool:
    """Whether a directory can be made beside the target. If the target is a file, the writer says so."""
    nearest = next(path for path in target.parents if path.exists())
    return not target.is_file() and nearest.is_dir() and os.access(nearest, os.W_OK)


def _prepare_remote(url: str, mode: WriteMode | None, has_files: Callable[[str], bool]) -> PendingWrite | None:
    if mode == "overwrite":
        raise UserError(
            f"cannot overwrite {url!r}: an object store cannot replace a directory in one step",
            hint="write to a new directory, or remove the old files first",
        )
    exists = mode in ("error", "ignore") and has_files(url)
    if exists and mode == "error":
        raise UserError(f"{url!r} exists", hint="write to a new place, or use mode='append'")
    return None if exists else PendingWrite(url)


class CommittingJob:
    """A job that writes, and whose rows are the counts of written rows. What it wrote is moved to the target when it is
    done, and removed if it fails.

    Args:
        write_empty: called if no rows were written: into a directory DataFusion then writes no file that would keep the
            columns.
    """

    def __init__(
        self, job: RunningJob, pending: PendingWrite, shown: str, write_empty: Callable[[], object] | None = None
    ) -> None:
        self._job = job
        self._pending = pending
        self._shown = shown
        self._write_empty = write_empty
        self._rows = 0
        self._over = False
        self._lock = threading.Lock()

    def next_frame(self) -> pa.RecordBatch | None:
        try:
            frame = self._job.next_frame()
            if frame is None and not self._over and self._rows == 0 and self._write_empty is not None:
                self._write_empty()
        except SparkfusionError as error:
            error.message = error.message.replace(self._pending.path.rstrip("/"), self._shown.rstrip("/"))
            raise
        if frame is not None:
            self._rows += pc.sum(frame.column(0)).as_py() or 0
        elif self._end():
            self._pending.commit()
        return frame

    def _end(self) -> bool:
        """Whether the caller is the first to end it: the consumer's thread, or any other that closes it."""
        with self._lock:
            first, self._over = not self._over, True
        return first

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._job.cancel(reason)

    def close(self) -> None:
        self._job.close()
        if self._end():
            self._pending.abandon()

    def reports(self) -> list[TaskReport]:
        return self._job.reports()

    def graph(self) -> StageGraph | None:
        return self._job.graph()

    def feeds(self) -> list[FeedStats]:
        return self._job.feeds()


def move(source: Path, target: Path) -> None:
    """Rename a file or directory; copy it first to another file system, so that half a file is never visible."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = target.with_name(f".{target.name}.part")
        shutil.copyfile(source, part)
        part.rename(target)


def _swap(new: Path, old: Path) -> None:
    """Exchange the names of two directories at once; if the system cannot do that, one after the other."""
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is not None and not exchange(
        _CURRENT_DIRECTORY, os.fsencode(new), _CURRENT_DIRECTORY, os.fsencode(old), _EXCHANGE
    ):
        return
    kept = old.with_name(f".{old.name}.replaced-{os.getpid()}")
    old.rename(kept)
    try:
        new.rename(old)
    except OSError:
        kept.rename(old)
        raise
    shutil.rmtree(kept, ignore_errors=True)
