"""The names that a session knows, for completion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkfusion.errors import SparkfusionError

if TYPE_CHECKING:
    from sparkfusion import Session

_COLUMNS = "select table_name, column_name from information_schema.columns where table_schema <> 'information_schema'"


@dataclass(frozen=True)
class KnownNames:
    """Tables with their columns, functions and settings, at the time of reading."""

    columns: dict[str, list[str]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def read_names(session: Session) -> KnownNames:
    """The names that the session knows now. Names that cannot be read are left out: an error would disturb a person who
    types."""
    from sparkfusion.session.table_names import ALL_FUNCTIONS

    columns: dict[str, list[str]] = {}
    for row in _rows(session, "show tables"):
        if row.get("table_schema") != "information_schema":
            columns.setdefault(row["table_name"], [])
    for row in _rows(session, _COLUMNS):
        columns.setdefault(row["table_name"], []).append(row["column_name"])
    functions = tuple(row["name"] for row in _rows(session, ALL_FUNCTIONS))
    return KnownNames(columns, functions, tuple(session.config))


def _rows(session: Session, sql: str) -> list[dict[str, str]]:
    try:
        found: list[dict[str, str]] = session.sql(sql, dialect="datafusion").to_pylist()
    except SparkfusionError:
        return []
    return found


class NameCache:
    """The names of the shell's session. They are read again when they are first needed after a statement."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session
        self._known: KnownNames | None = None

    def forget(self) -> None:
        self._known = None

    def names(self) -> KnownNames:
        if self._known is None:
            self._known = read_names(self._session())
        return self._known
