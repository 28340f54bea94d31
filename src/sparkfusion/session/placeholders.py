"""Placeholder files of tables whose rows are elsewhere. They are removed with the table, after the last query that
reads it.

DataFusion scans such a table as a directory of Arrow files. The files are not valid Arrow files: reading one fails,
instead of returning no rows. Queries see a view of the table, with a condition that is always true. DataFusion
evaluates it while it plans. Until then every plan that reads the table holds the condition, so it shows when the last
plan is gone.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
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


class _Holds:
    """A condition that is true for every row. Tasks may get it too, if a user has switched the optimizer off."""

    def __call__(self, numbers: pa.Array) -> pa.Array:
        return pa.array([True] * len(numbers))


class Placeholders:
    """The placeholder files of one kind of table in a session, each table by its number. Any thread may make tables."""

    def __init__(self, purpose: str, schema: SessionSchema) -> None:
        self._purpose = purpose
        self._condition = f"in_{purpose.replace('-', '_')}"
        self._schema = schema
        self._home: OwnedDirectory | None = None
        self._making_home = threading.Lock()
        self._elsewhere: list[datafusion.DataFrame] = []

    @property
    def home(self) -> Path | None:
        """The directory of all placeholder files, once there is one. Each table has one, named by its number."""
        return self._home.path if self._home is not None else None

    def register(
        self, context: SessionContext, name: str, number: int, columns: pa.Schema, parts: int, forget: Forget
    ) -> str:
        """Register a table of so many files, and return its name in plans.

        In a schema that is not the session's own, we do not learn when the table is dropped: there it stays as long as
        the session.
        """
        with self._schema.watch_registrations() as registered:
            planned_as, dataframe = self.place(context, name, number, columns, parts, forget)
        for own_name in registered:
            self._schema.show_as(own_name, Table(dataframe))
        if not registered:
            self._elsewhere.append(dataframe)
        return planned_as

    def place(
        self, context: SessionContext, name: str, number: int, columns: pa.Schema, parts: int, forget: Forget
    ) -> tuple[str, datafusion.DataFrame]:
        """Make such a table. Returns its name in plans, and all of it as queries see it."""
        with self._making_home:
            if self._home is None:
                self._home = OwnedDirectory(self._purpose, Path(tempfile.gettempdir()))
            directory = self._home.path / str(number)
        condition = condition_while_read(self._condition, number, directory, forget)
        directory.mkdir()
        for part in range(parts):
            (directory / f"{part:06d}.arrow").write_bytes(_PLACEHOLDER)
        context.register_arrow(name, str(directory), schema=columns)
        scan = context.table(name)
        return scan.logical_plan().to_variant().table_name(), scan.filter(condition)

    def tables_in(self, dataframe: datafusion.DataFrame) -> list[int]:
        """The numbers of the tables in a query, before DataFusion has optimized it."""
        return numbers_in(dataframe, self._condition)

    def close(self) -> None:
        self._elsewhere.clear()
        if self._home is not None:
            self._home.close()


def condition_while_read(name: str, number: int, directory: Path, forget: Forget) -> datafusion.Expr:
    """A condition that is true for every row, shown in logical plans as `name(Int64(number))`.

    When the last plan that holds it is gone, the directory is removed and `forget` is called.
    """
    holds = _Holds()
    weakref.finalize(holds, _let_go, directory, os.getpid(), weakref.WeakMethod(forget), number).atexit = False
    return udf(holds, [pa.int64()], pa.bool_(), "immutable", name)(lit(number))


def numbers_in(dataframe: datafusion.DataFrame, name: str) -> list[int]:
    """The numbers in conditions of that name in a query."""
    text = dataframe.logical_plan().display_indent()
    return sorted({int(number) for number in re.findall(rf"\b{name}\(Int64\((\d+)\)\)", text)})


def _let_go(directory: Path, owner: int, forget: weakref.WeakMethod[Forget], number: int) -> None:
    if os.getpid() == owner:  # a forked child must not take its parent's files away
        shutil.rmtree(directory, ignore_errors=True)
        if (call := forget()) is not None:
            call(number)
