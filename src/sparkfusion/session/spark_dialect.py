"""Spark's SQL in a session: written by `sparkfusion.dialect`, planned by DataFusion."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion.errors import UserError
from sparkfusion.extras import import_extra
from sparkfusion.plan.functions import register_spark_functions
from sparkfusion.runner.table_versions import split_version
from sparkfusion.session.chains import check_chains
from sparkfusion.session.datafusion_calls import QUERIES_ONLY
from sparkfusion.session.session_settings import DEFAULT_CATALOG, DEFAULT_SCHEMA, SessionSettings
from sparkfusion.session.session_tables import SessionTables
from sparkfusion.session.sql_names import quote_name
from sparkfusion.session.table_names import call_with_tables, is_unknown_table, known_tables

if TYPE_CHECKING:
    from sparkfusion.dialect.typed_sql import TypeProbe

_OPTIONS = {
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.catalog.create_default_catalog_and_schema": "true",
}
_TIME_ZONE = "datafusion.execution.time_zone"
_UTC = ("", "UTC", "Etc/UTC", "GMT", "Z", "+00", "+00:00")


class SparkDialect:
    """Reads queries of one session in Spark's dialect, one at a time."""

    def __init__(self, context: SessionContext, settings: SessionSettings, tables: SessionTables) -> None:
        self._context = context
        self._settings = settings
        self._tables = tables
        self._lock = threading.Lock()
        self._probe: TypeProbe | None = None
        self._probed: frozenset[str] = frozenset()

    def read(self, text: str, prefix: str = "", values: Mapping[str, object] | None = None) -> datafusion.DataFrame:
        """The query, planned. `prefix` comes before it in the text for DataFusion, such as EXPLAIN."""
        with self._lock:
            written = prefix + self.write(text, values)
            check_chains(written)
            options = None if prefix else QUERIES_ONLY
            made: datafusion.DataFrame = self._tables.read_names(
                written, lambda: call_with_tables(self._context, self._reader().sql, written, options=options)
            )
        return self._context.create_dataframe_from_logical_plan(made.logical_plan())

    def write(self, text: str, values: Mapping[str, object] | None = None) -> str:
        """The query in DataFusion's dialect; `values` are those of its parameters."""
        import_extra("sqlglot", "dialect", "the spark dialect")
        from sparkfusion.dialect.query_writer import QueryWriter
        from sparkfusion.dialect.typed_sql import TypeProbe

        zone = self._settings.datafusion_options().get(_TIME_ZONE, "")
        if zone not in _UTC:
            hint = f"SET {_TIME_ZONE} = 'UTC', or use dialect='datafusion'"
            raise UserError(f"the spark dialect has timestamps in UTC, and {_TIME_ZONE} is {zone!r}", hint=hint)
        own = self._own_functions()
        if self._probe is None or own != self._probed:
            self._probe, self._probed = TypeProbe(self._with_functions), own
        return QueryWriter(self._find_table, self._probe, own, values).write(text)

    def _find_table(self, names: Sequence[str]) -> tuple[str, pa.Schema]:
        """A table by the parts of its name; upper and lower case are the same, as in Spark."""
        if len(names) > 3:
            raise UserError(f"table {'.'.join(names)!r} not found: a name has at most three parts")
        if (own := self._own_name(names)) is not None:
            return self._read_schema(own)
        context = self._context
        shown = ".".join(names)
        if (version := split_version(names)) is not None and self._own_name(version[0]) is not None:
            hint = "leave out AS OF, or write the name of Spark's table with its database"
            raise UserError(f"{'.'.join(version[0])!r} is a table of the session, which has no versions", hint=hint)
        if not self._tables.of_catalog.is_used():
            raise UserError(f"table {shown!r} not found", hint=known_tables(shown, context))
        try:
            return self._read_schema(names)
        except UserError as error:
            if is_unknown_table(error.message):
                raise UserError(f"table {shown!r} not found", hint=error.hint) from error
            raise

    def _own_name(self, names: Sequence[str]) -> tuple[str, str, str] | None:
        """The full name of a table of the session."""
        wanted = [*[self._settings[DEFAULT_CATALOG], self._settings[DEFAULT_SCHEMA]][: 3 - len(names)], *names]
        catalog = _like(wanted[0], self._context.catalog_names())
        schema = _like(wanted[1], self._context.catalog(catalog).names()) if catalog is not None else None
        if catalog is None or schema is None:
            return None
        table = _like(wanted[2], self._context.catalog(catalog).schema(schema).names())
        return (catalog, schema, table) if table is not None else None

    def _read_schema(self, names: Sequence[str]) -> tuple[str, pa.Schema]:
        """The name and columns of a table of the session, or of Spark's catalog."""
        name = ".".join(map(quote_name, names))
        context = self._context
        found = self._tables.read_names(f"select * from {name}", lambda: call_with_tables(context, context.table, name))
        return name, found.schema()

    def _reader(self) -> SessionContext:
        """A context with the session's tables, and the functions of the dialect."""
        reader = self._with_functions()
        for name in self._context.catalog_names():
            reader.register_catalog_provider(name, self._context.catalog(name))
        return reader

    def _with_functions(self) -> SessionContext:
        from sparkfusion.dialect.function_calls import CALLED_SPARK_FUNCTIONS

        made = SessionContext(SessionConfig(_OPTIONS))
        register_spark_functions(made, CALLED_SPARK_FUNCTIONS)
        for name in self._own_functions():
            made.register_udf(self._context.udf(name))
        return made

    def _own_functions(self) -> frozenset[str]:
        """The user's own scalar functions."""
        return frozenset(self._context.udfs()) - _known_functions()


@cache
def _known_functions() -> frozenset[str]:
    context = SessionContext()
    context.enable_spark_functions()
    return frozenset(context.udfs())


def _like(wanted: str, names: Any) -> str | None:
    """The name that is wanted: exactly, or else one that differs in upper and lower case only."""
    if wanted in names:
        return wanted
    return next((name for name in sorted(names) if name.lower() == wanted.lower()), None)
