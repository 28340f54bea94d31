"""Write rows to files: the query runs distributed, and DataFusion's own writer makes the files.

A sink loses options when the plan is encoded: timestamps come out empty in CSV, metadata is lost in Parquet. So it is
never sent to tasks. Into a directory every task of the last stage writes its own rows, and the coordinator moves the
files of committed attempts to the target. The coordinator itself writes a single file, a query with a LIMIT, and a
directory that tasks cannot write to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import LocalFrameStore
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.session.counting_job import CountingJob, count_frame
from sparkfusion.session.query import RunningQuery
from sparkfusion.session.sql_names import is_plain_name
from sparkfusion.session.write_modes import move
from sparkfusion.urls import url_scheme
from sparkfusion.worker.copy import CopySpec, copy_context, copy_frames, quote_text
from sparkfusion.worker.task import TaskReport
from sparkfusion.worker.task_context import PrepareContext

_TAIL = re.compile(r"\s*to\s+'((?:[^']|'')*)'\s*(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class WriteTarget:
    format: str
    path: str | PathLike[str]
    options: Mapping[str, str]
    partition_by: tuple[str, ...] = ()


def copy_tail(target: WriteTarget) -> str:
    """What follows the source in a COPY.

    >>> print(copy_tail(WriteTarget("CSV", "/x/it's", {"format.has_header": "true"}, ("k",))))
    TO '/x/it''s' STORED AS CSV PARTITIONED BY (k) OPTIONS ('format.has_header' 'true')
    """
    text = f"TO {quote_text(os.fspath(target.path))} STORED AS {target.format}"
    if target.partition_by:
        for name in target.partition_by:
            _check_plain(name)
        text += f" PARTITIONED BY ({', '.join(target.partition_by)})"
    if target.options:
        options = ", ".join(f"{quote_text(name)} {quote_text(value)}" for name, value in target.options.items())
        text += f" OPTIONS ({options})"
    return text


@dataclass(frozen=True)
class CopyTarget:
    """The parts of a COPY's tail. `shown` is what errors call the path.

    >>> CopyTarget.parse("TO '/x/it''s' STORED AS CSV")
    CopyTarget(path="/x/it's", rest='STORED AS CSV', shown="/x/it's")
    """

    path: str
    rest: str
    shown: str = ""

    @classmethod
    def parse(cls, tail: str) -> CopyTarget:
        found = _TAIL.fullmatch(tail)
        if found is None:
            raise UserError(f"cannot read this COPY: {tail}", hint="write COPY … TO 'path' STORED AS …")
        path = found[1].replace("''", "'")
        return cls(path, found[2], path)

    @property
    def tail(self) -> str:
        return f"TO {quote_text(self.path)} {self.rest}"

    def at(self, path: str) -> CopyTarget:
        """The same at another path, which errors do not show."""
        return replace(self, path=path)

    @property
    def is_directory(self) -> bool:
        """Whether the path is a directory: DataFusion takes only a path with an extension for a file."""
        return self.path.endswith("/") or not Path(self.path).suffix

    @property
    def is_local_directory(self) -> bool:
        return url_scheme(self.path) is None and self.is_directory


@dataclass(frozen=True)
class RowCopier:
    """Writes rows of a query from this process: first to files of one directory, which a COPY then reads."""

    query: QueryId
    target: CopyTarget
    options: Mapping[str, str]
    store_dir: str
    prepare: PrepareContext

    def copy(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
        """Write all rows, in their order; returns DataFusion's count. Without rows, one file is written to keep the
        columns. With PARTITIONED BY there is no directory for such a file: then only the target directory is made."""
        key = TaskKey(self.query, 0, 0)
        with closing(LocalFrameStore(self.query, memory_budget=0, directory=self.store_dir)) as store:
            sink = FileSink(key, store)
            rows = 0
            for batch in batches:
                rows += batch.num_rows
                sink.write(0, batch)
            if rows == 0:
                sink.write_empty(schema)
            sink.finish()
            context = copy_context(self.options)
            self.prepare(context)
            frames = store.attempt_directory(key, in_memory=False)
            counted = copy_frames(context, frames, self.target.path, self.target.rest, self.target.shown)
        if rows == 0 and self.target.is_local_directory:
            Path(self.target.path).mkdir(parents=True, exist_ok=True)
        return counted


class WriteJob(CountingJob):
    """Writes the rows of a query to files: in this process, or by its tasks, which then get a `CopySpec`."""

    def __init__(self, copier: RowCopier, start: Callable[[CopySpec | None], RunningQuery], *, by_tasks: bool) -> None:
        super().__init__()
        self._copier = copier
        self._query = copier.query
        self._target = copier.target
        self._start = start
        self._by_tasks = by_tasks

    def write(self) -> pa.RecordBatch:
        if self._by_tasks:
            return self._write_by_tasks()
        with self.begin(partial(self._start, None)) as running:
            return self._copier.copy(running, running.schema)

    def _write_by_tasks(self) -> pa.RecordBatch:
        target = Path(self._target.path).absolute()
        missing = [path for path in target.parents if not path.exists()]
        try:
            return self._stage(target, _staging(self._query, target))
        finally:
            for path in missing:  # a write that failed leaves no directory that it made on the way
                with suppress(OSError):
                    path.rmdir()

    def _stage(self, target: Path, staging: SharedHome) -> pa.RecordBatch:
        with closing(staging):
            spec = CopySpec(str(staging.path), self._target.shown, self._target.rest, self._copier.options)
            with self.begin(partial(self._start, spec)) as running:
                for _ in running:
                    raise AssertionError("a task that writes gave rows to the consumer")
                everything = running.reports()
                last = max(report.key.stage for report in everything)
                reports = [report for report in everything if report.key.stage == last and report.rows]
                if not reports:
                    return self._copier.copy([], running.schema)
            self.check_stopped()
            for report in reports:
                self._commit(report, staging.path, target)
        return count_frame(sum(report.rows for report in reports))

    def _commit(self, report: TaskReport, staging: Path, target: Path) -> None:
        """Move what one task wrote to the target, under a name that no other write uses."""
        for index, file in enumerate(report.manifest.files):
            source = Path(file.path)
            _, *places, name = source.relative_to(staging).parts
            place = target.joinpath(*places)
            place.mkdir(parents=True, exist_ok=True)
            suffix = name[name.index(".") :] if "." in name else ""
            move(source, place / f"{self._query}-{report.key.task:05d}-{index:03d}{suffix}")


def _staging(query: QueryId, target: Path) -> SharedHome:
    """A directory beside the target, so that files only have to be renamed."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(target.parent, os.W_OK) or (target.exists() and not target.is_dir()):
            reason = "it is a file" if target.is_file() else "no permission"
            raise UserError(f"cannot write the directory {str(target)!r}: {reason}")
        return SharedHome(query, target.parent)
    except OSError as error:
        raise UserError(f"cannot write {str(target)!r}: {error.strerror}") from error


def _check_plain(column: str) -> None:
    """Raise for names that need quotes: DataFusion takes quotes in PARTITIONED BY for a part of the name."""
    if not is_plain_name(column):
        raise UserError(
            f"cannot partition by {column!r}: COPY takes only lower-case names without special characters",
            hint="rename the column, or pass write_options=DataFrameWriteOptions(partition_by=[...])",
        )
