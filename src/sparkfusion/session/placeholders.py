"""Placeholder files of tables whose rows are elsewhere. They go with the table, and with the last query that reads it.

DataFusion scans such a table as a directory of Arrow files. They are no Arrow files: reading one fails, instead of
finding no rows. Queries find a view of the table, with a condition that always holds. DataFusion evaluates it while it
plans; until then the condition is in every plan that reads the table, so it tells when the last of them is gone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import datafusion
import pyarrow as pa
from datafusion import SessionContext, lit, udf
from datafusion.catalog import Table

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.session.session_schema import SessionSchema

_PLACEHOLDER = b"-"  # one byte: DataFusion skips empty files, and could split longer ones between tasks

Forget = Callable[[int], object]
"""A method, called with the number of a table that nothing reads any more, on any thread, at any time."""


@dataclass(frozen=True)
class Placed:
    """A table with placeholder files.

    Attributes:
        name: what plans call it.
        dataframe: all of it, as queries see it.
    """

    name: str
    dataframe: datafusion.DataFrame


class _Holds:
    """A condition that holds for every row. Tasks may get it too, where a user has switched the optimizer off."""

    def __call__(self, numbers: pa.Array) -> pa.Array:
        return pa.array([True] * len(numbers))


class Placeholders:
    """The placeholder files of one kind of table in a session, each table by its number."""

    def __init__(self, purpose: str, schema: SessionSchema) -> None:
        self._purpose = purpose
        self._schema = schema
        self._home: OwnedDirectory | None = None
        self._elsewhere: list[Placed] = []

    @property
    def home(self) -> Path | None:
        """The directory of all of them, as soon as there is one. The files of a table are in one that is its number."""
        return self._home.path if self._home is not None else None

    def register(
        self, context: SessionContext, name: str, number: int, columns: pa.Schema, parts: int, forget: Forget
    ) -> str:
        """Register a table of so many files, and say what plans call it.

        In a schema that is not the session's own no one tells when the table goes: there it stays with the session.
        """
        with self._schema.registering() as registered:
            placed = self._place(context, name, number, columns, parts, forget)
        for own_name in registered:
            self._schema.show_as(own_name, Table(placed.dataframe))
        if not registered:
            self._elsewhere.append(placed)
        return placed.name

    def read(self, name: str, number: int, columns: pa.Schema, parts: int, forget: Forget) -> Placed:
        """Such a table without a place in a catalog."""
        return self._place(SessionContext(), name, number, columns, parts, forget)

    def _place(
        self, context: SessionContext, name: str, number: int, columns: pa.Schema, parts: int, forget: Forget
    ) -> Placed:
        if self._home is None:
            self._home = OwnedDirectory(self._purpose, Path(tempfile.gettempdir()))
        directory = self._home.path / str(number)
        holds = _Holds()
        weakref.finalize(holds, _let_go, directory, os.getpid(), weakref.WeakMethod(forget), number).atexit = False
        directory.mkdir()
        for part in range(parts):
            (directory / f"{part:06d}.arrow").write_bytes(_PLACEHOLDER)
        context.register_arrow(name, str(directory), schema=columns)
        scan = context.table(name)
        condition = udf(holds, [pa.int64()], pa.bool_(), "immutable", "is_placeholder")
        return Placed(scan.logical_plan().to_variant().table_name(), scan.filter(condition(lit(number))))

    def close(self) -> None:
        self._elsewhere.clear()
        if self._home is not None:
            self._home.close()


def _let_go(directory: Path, owner: int, forget: weakref.WeakMethod[Forget], number: int) -> None:
    if os.getpid() == owner:  # a forked child must not take its parent's files away
        shutil.rmtree(directory, ignore_errors=True)
        if (call := forget()) is not None:
            call(number)
