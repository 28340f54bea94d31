"""The schema `public` of a session: like DataFusion's own, but names can mean other tables while a query is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from datafusion import SessionContext
from datafusion.catalog import SchemaProvider, Table


class SessionSchema(SchemaProvider):
    """Tables by their names, as in DataFusion's schema of tables in memory. Any thread may call any method.

    DataFusion calls `table`, `register_table` and so on; its binding reads `table_names` and `owner_name` as
    attributes.
    """

    def __init__(self, context: SessionContext) -> None:
        """Become the schema of this new context."""
        self._tables: dict[str, Table] = {}
        self._views: dict[str, Table] = {}
        self._here = threading.local()
        self._known: list[dict[str, Any]] = []
        context.catalog().register_schema("public", self)

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]
        return list(self._tables)

    @property
    def owner_name(self) -> str | None:  # type: ignore[override]
        """Nobody: `information_schema.schemata` shows NULL only if there is no such attribute."""
        raise AttributeError("owner_name")

    def names(self) -> set[str]:
        return set(self._tables)

    def table(self, name: str) -> Table | None:
        instead: Mapping[str, Table] = getattr(self._here, "instead", {})
        views = {} if getattr(self._here, "as_they_are", False) else self._views
        found: Mapping[str, Table] = getattr(self._here, "found", {})
        return instead.get(name) or views.get(name) or self._tables.get(name) or found.get(name)

    def register_table(self, name: str, table: Any) -> None:
        if name in self._tables:
            raise ValueError(f"The table {name} already exists")
        self._tables[name] = table
        getattr(self._here, "registered", []).append(name)

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        self._views.pop(name, None)
        self._tables.pop(name, None)
        for known in self._known:
            known.pop(name, None)

    def table_exist(self, name: str) -> bool:
        return name in self._tables

    def own(self, name: str) -> Table | None:
        """The table as it was registered."""
        return self._tables.get(name)

    def forget_in(self, known: dict[str, Any]) -> None:
        """When a table is dropped, remove its entry from this mapping too."""
        self._known.append(known)

    @contextmanager
    def watch_registrations(self) -> Iterator[list[str]]:
        """The names of the tables that this thread registers here while the `with` lasts."""
        self._here.registered = names = list[str]()
        try:
            yield names
        finally:
            self._here.registered = []

    def show_as(self, name: str, view: Table) -> None:
        """From now on queries find a view of the table, as long as the table exists."""
        self._views[name] = view

    @contextmanager
    def as_they_are(self) -> Iterator[None]:
        """In this thread, find tables and not views of them: DROP TABLE does not drop views."""
        before, self._here.as_they_are = getattr(self._here, "as_they_are", False), True
        try:
            yield
        finally:
            self._here.as_they_are = before

    @contextmanager
    def instead(self, tables: Mapping[str, Table]) -> Iterator[None]:
        """In this thread, let names mean these tables."""
        self._here.instead = tables
        try:
            yield
        finally:
            self._here.instead = {}

    @contextmanager
    def besides(self, tables: Mapping[str, Table]) -> Iterator[None]:
        """In this thread, let names that have no table here mean these."""
        self._here.found = tables
        try:
            yield
        finally:
            self._here.found = {}
