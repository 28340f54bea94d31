"""Write a task's rows to files of the user's format: a COPY over its frames, run where the task runs.

DataFusion's sinks lose options when they are encoded. So no sink is sent to tasks, but the text of the COPY statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import QueryCancelledError, UserError, clean_message
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import FrameStore
from sparkfusion.ids import TaskKey
from sparkfusion.worker.task_context import session_config

_ROWS = "sparkfusion_rows"
_IN_ORDER = {
    "datafusion.execution.target_partitions": "1",
    "datafusion.optimizer.repartition_file_scans": "false",
}


_ONE_FILE = {"datafusion.execution.minimum_parallel_output_files": "1"}  # tasks are the parallelism


@dataclass(frozen=True)
class CopySpec:
    """How tasks write.

    Attributes:
        staging: the directory in which every attempt makes a directory of its own.
        target: where the user wants the files; the coordinator moves them there.
        rest: what follows the path in the COPY statement.
        options: every `datafusion.*` option of the session.
    """

    staging: str
    target: str
    rest: str
    options: Mapping[str, str]


def copy_frames(context: SessionContext, frames: Path, path: str, rest: str, shown: str) -> pa.RecordBatch:
    """COPY the frame files of a directory, in order, and return DataFusion's count. Errors name the path `shown`."""
    try:
        context.register_arrow(_ROWS, str(frames))
        (counted,) = context.sql(f"COPY {_ROWS} TO {quote_text(path)} {rest}").collect()
    except Exception as error:
        message = clean_message(error).replace(path, shown)
        raise UserError(f"cannot write {shown!r} {rest}: {message}") from error
    return counted


def copy_context(options: Mapping[str, str]) -> SessionContext:
    """A context with one partition that does not split files, which keeps the order of the rows."""
    return SessionContext(session_config({**options, **_IN_ORDER}))


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class CopySink:
    """Collects a task's frames in a store, and writes them to the user's files when the task is done. The manifest then
    names these files."""

    def __init__(self, key: TaskKey, store: FrameStore, spec: CopySpec) -> None:
        self._key = key
        self._store = store
        self._spec = spec
        self._frames = FileSink(key, store)
        self._rows = 0

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._frames.write(partition, batch)

    def finish(self) -> Manifest:
        self._frames.finish()
        if self._rows == 0:
            return Manifest(self._key)
        own = Path(self._spec.staging) / f"{self._key.stage}-{self._key.task}-{self._key.attempt}"
        own.mkdir()
        frames = self._store.attempt_directory(self._key, in_memory=False)
        context = copy_context({**self._spec.options, **_ONE_FILE})
        try:
            copy_frames(context, frames, f"{own}/", self._spec.rest, self._spec.target)
        finally:  # DataFusion makes the directories that a file needs, also after the query has removed them
            gone = SharedHome.is_gone(Path(self._spec.staging))
        if gone:
            raise QueryCancelledError("the query has ended", where=self._key)
        self._store.discard(self._key)
        made = sorted(path for path in own.rglob("*") if path.is_file())
        return Manifest(self._key, tuple(FrameFile(str(path), 0, 0, path.stat().st_size) for path in made))

    def abort(self) -> None:
        self._frames.abort()
