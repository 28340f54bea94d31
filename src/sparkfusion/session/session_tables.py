"""The tables of a session: DataFusion's catalog, and what sparkfusion has to know about each table besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.runner.base import SparkDataFrames
from sparkfusion.session.adopted_tables import AdoptedTables
from sparkfusion.session.catalog_tables import CatalogTables
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.directory_tables import DirectoryTables, table_of
from sparkfusion.session.external_statement import parse_external
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.forked import check_not_forked
from sparkfusion.session.lossy import LossyTables, lost_in_statement
from sparkfusion.session.memory_tables import MemoryTables
from sparkfusion.session.null_views import makes_of_rows, null_views
from sparkfusion.session.object_stores import ObjectStores
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.session_settings import DEFAULT_CATALOG, DEFAULT_SCHEMA, SessionSettings
from sparkfusion.session.skipping_statement import parse_on_error
from sparkfusion.session.statements import makes_or_drops_tables
from sparkfusion.session.table_names import call_with_tables
from sparkfusion.session.vanished_files import VanishedFiles

T = TypeVar("T")
_ENABLE = "SET sparkfusion.enabled = true"
_WRITE_FIRST = "write the rows that the query needs to Parquet with a simpler query, and register these files"


class SessionTables:
    """What one session knows about its tables, by their kinds, and the object stores they are in."""

    def __init__(
        self, context: SessionContext, settings: SessionSettings, spark: SparkDataFrames | None = None
    ) -> None:
        self.context = context
        self._settings = settings
        self._schema = SessionSchema(context)
        self.object_stores = ObjectStores()
        self.prepare = self.object_stores.prepare  # gives another context what cannot be sent as data
        self.directories = DirectoryTables(self._schema, settings)
        self.in_memory = MemoryTables(self._schema)
        self.lossy = LossyTables()
        self.of_spark = AdoptedTables(self._schema)
        self.feeds = FeedTables(self._schema)
        self.of_catalog = CatalogTables(
            context, settings, self._schema, self.of_spark, self.feeds, self.object_stores, spark
        )
        self.vanished_files = VanishedFiles(self.directories, self.of_catalog.links)

    def close(self) -> None:
        self.in_memory.close()
        self.of_catalog.close()
        self.of_spark.close()
        self.feeds.close()

    def names(self) -> set[str]:
        """The tables of the default schema, where DataFusion puts DataFrames that are values of parameters."""
        catalog, schema = self._settings[DEFAULT_CATALOG], self._settings[DEFAULT_SCHEMA]
        try:
            return set(self.context.catalog(catalog).schema(schema).names())
        except KeyError:  # a default that does not exist: DataFusion says so
            return set()

    def read_names(self, text: str, read: Callable[[], T], otherwise: T | None = None) -> T:
        """Read a query or a name. Names of large in-memory tables mean these tables by reference, and tables that have
        got NULL partitions show them as NULL.

        If there are no such tables, or if the statement is possible only for the tables themselves, it is read
        unchanged. Names that the session does not know mean tables of Spark's catalog.
        """
        check_not_forked()
        return self.of_catalog.read_statement(text, lambda: self._read_own_names(text, read, otherwise))

    def _read_own_names(self, text: str, read: Callable[[], T], otherwise: T | None) -> T:
        if makes_or_drops_tables(text):
            views = null_views(self.directories, text) if makes_of_rows(text) else {}
            with self.in_memory.remember_tables_of(text), self._schema.as_they_are(), self._schema.instead(views):
                return read()
        with self.in_memory.remember_tables_of(text):
            views = self.in_memory.views(text, self._reference_bytes())
            views |= null_views(self.directories, text)
            if views:
                with suppress(SparkfusionError), self._schema.instead(views):
                    return read()
            return read() if otherwise is None else otherwise

    def replace_view(self, name: str, view: datafusion.DataFrame) -> None:
        """Register a query as a view, in place of the table or view of that name."""
        check_not_forked()
        call_datafusion(self.context.deregister_table, name)
        call_with_tables(self.context, self.context.register_view, name, view)
        self.lossy.add(name, None)

    def keep_rows(self, rows: pa.Table) -> datafusion.DataFrame:
        """A DataFrame of rows, by reference if they are large, without a table in the user's catalog."""
        return self.in_memory.dataframe_of(rows, self._reference_bytes())

    def _reference_bytes(self) -> int:
        return self._settings.ours.integer("memory_table_bytes")

    @contextmanager
    def remember_made_by(self, statement: str) -> Iterator[None]:
        """Remember what the plans of a table of files do not contain, when a statement makes the table."""
        made = parse_external(statement)
        said = parse_on_error(made)
        made = said.plain if said is not None else made
        before = self.directories.find_table(made.name) if made is not None else None
        yield
        if made is None:
            return
        changed = self.directories.find_table(made.name) is not before
        lost = lost_in_statement(made)
        if changed or (before is None and lost is not None):
            self.lossy.add(made.name, lost)
        if not made.unbounded and (said is None or said.on_error != "skip"):
            table = table_of(made)
            self.directories.add(made.name, table, before)
            if changed:
                self.vanished_files.add(made.name, table.target.path)

    def only_distributed(self, dataframe: datafusion.DataFrame) -> str | None:
        """Why no single node can answer a query, in words; None if one can."""
        if found := self.of_spark.read_by(dataframe):
            return f"{', '.join(found)} is a Spark DataFrame, so only Spark tasks can read it"
        if found := self.feeds.read_by(dataframe):
            return f"{', '.join(found)} is a feed, so only tasks can read it"
        return None

    def refuse_single_node(self, dataframe: datafusion.DataFrame, reason: str) -> None:
        """Raise if a query that cannot be distributed, for this reason, reads what only tasks can read."""
        enable = None if self._settings.ours.flag("enabled") else _ENABLE
        if found := self.of_spark.read_by(dataframe):
            raise UserError(
                f"the query reads {', '.join(found)} from Spark, but cannot be distributed: {reason}",
                hint=enable or "write the table to Parquet and register these files",
            )
        if found := self.feeds.read_by(dataframe):
            raise UserError(
                f"the query reads the feed {', '.join(found)}, but cannot be distributed: {reason}",
                hint=enable or _WRITE_FIRST,
            )
