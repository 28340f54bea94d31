"""`session.catalog()`: DataFusion's catalog, which also lists the tables that queries find in Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from datafusion.catalog import Catalog

from sparkfusion.runner.base import ListedTable
from sparkfusion.session.table_names import PARAMETER_VIEW

_COLUMNS = ("table_catalog", "table_schema", "table_name", "table_type", "found_in")
_SCHEMA = pa.schema([(name, pa.string()) for name in _COLUMNS])

ListOfSpark = Callable[[str | None], list[ListedTable]]


class SessionCatalog(Catalog):
    """A catalog of the session, with all that DataFusion's own has."""

    def __init__(self, name: str, inner: Catalog, list_spark: ListOfSpark) -> None:
        """`Session.catalog` makes it."""
        super().__init__(inner.catalog)
        self._name = name
        self._list_spark = list_spark

    def tables(self, database: str | None = None) -> pa.Table:
        """The tables that a query can name: those of this catalog, then those of Spark.

        Args:
            database: of Spark; without it, Spark's current one. Temporary views are listed with every database.
        """
        rows = [(self._name, *each, "session") for each in self._own()]
        rows += [(each.catalog, each.database, each.name, each.kind, "spark") for each in self._list_spark(database)]
        return pa.Table.from_pylist([dict(zip(_COLUMNS, row, strict=True)) for row in rows], _SCHEMA)

    def _own(self) -> list[tuple[str, str, str]]:
        found = []
        for schema in sorted(self.names() - {"information_schema"}):
            home = self.schema(schema)
            for table in sorted(home.names()):
                if not PARAMETER_VIEW.fullmatch(table):
                    kind = getattr(home.table(table), "kind", "base")
                    found.append((schema, table, "VIEW" if kind == "view" else "BASE TABLE"))
        return found
