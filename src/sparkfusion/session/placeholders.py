"""Placeholder files of tables whose rows are elsewhere. They go with the table, and with the last frame that reads it.

DataFusion scans such a table as a directory of Arrow files. They are no Arrow files: reading one fails, instead of
finding no rows. The name of the table means a view, with a condition that always holds. DataFusion evaluates it while
it plans; until then the condition is in every plan that reads the table, so it tells when the last of them is gone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext, lit, udf
from datafusion.catalog import Table

from sparkfusion.exchange.owned import OwnedDirectory

_PLACEHOLDER = b"-"  # one byte: DataFusion skips empty files, and could split longer ones between tasks


class _Holds:
    """A condition that holds for every row. Tasks may get it too, where a user has switched the optimizer off."""

    def __call__(self, numbers: pa.Array) -> pa.Array:
        return pa.array([True] * len(numbers))


class Placeholders:
    """The placeholder files of one kind of table in a session, each table by its number."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._home: OwnedDirectory | None = None

    @property
    def home(self) -> Path | None:
        """The directory of all of them, as soon as there is one. The files of a table are in one that is its number."""
        return self._home.path if self._home is not None else None

    def register(
        self,
        context: SessionContext,
        name: str,
        number: int,
        schema: pa.Schema,
        *,
        parts: int,
        forget: Callable[[int], object],
    ) -> str:
        """Register a table of so many files, and say what plans call it. `forget` is called when nothing reads it."""
        if self._home is None:
            self._home = OwnedDirectory(self._purpose, Path(tempfile.gettempdir()))
        directory = self._home.path / str(number)
        holds = _Holds()
        weakref.finalize(holds, _let_go, directory, os.getpid(), forget, number).atexit = False
        directory.mkdir()
        for part in range(parts):
            (directory / f"{part:06d}.arrow").write_bytes(_PLACEHOLDER)
        context.register_arrow(name, str(directory), schema=schema)
        scan = context.table(name)
        condition = udf(holds, [pa.int64()], pa.bool_(), "immutable", "is_placeholder")
        context.deregister_table(name)
        context.register_table(name, Table(scan.filter(condition(lit(number)))))
        return str(scan.logical_plan().to_variant().table_name())

    def close(self) -> None:
        if self._home is not None:
            self._home.close()


def _let_go(directory: Path, owner: int, forget: Callable[[int], object], number: int) -> None:
    if os.getpid() == owner:  # a forked child must not take its parent's files away
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(KeyError):
            forget(number)
