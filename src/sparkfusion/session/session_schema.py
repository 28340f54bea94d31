"""The schema `public` of a session: DataFusion's own, but for tables that mean something else while a query is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from datafusion import SessionContext
from datafusion.catalog import SchemaProvider, Table


class SessionSchema(SchemaProvider):
    """Tables by their names, as DataFusion's schema of tables in memory has them. Any thread may call it.

    DataFusion calls `table`, `register_table` and the like; its binding reads `table_names` as an attribute.
    """

    def __init__(self, context: SessionContext) -> None:
        """Become the schema of this context, which is new."""
        self._tables: dict[str, Table] = {}
        self._instead = threading.local()
        context.catalog().register_schema("public", self)

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]
        return list(self._tables)

    def names(self) -> set[str]:
        return set(self._tables)

    def table(self, name: str) -> Table | None:
        instead: Mapping[str, Table] = getattr(self._instead, "tables", {})
        return instead.get(name) or self._tables.get(name)

    def register_table(self, name: str, table: Any) -> None:
        if name in self._tables:
            raise ValueError(f"The table {name} already exists")
        self._tables[name] = table

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        self._tables.pop(name, None)

    def table_exist(self, name: str) -> bool:
        return name in self._tables

    def own(self, name: str) -> Table | None:
        """The table as it was registered."""
        return self._tables.get(name)

    @contextmanager
    def instead(self, tables: Mapping[str, Table]) -> Iterator[None]:
        """In this thread, let names mean these tables."""
        self._instead.tables = tables
        try:
            yield
        finally:
            self._instead.tables = {}
