"""Tables of Spark's catalog in queries: names that the session does not know are looked up in Spark.

Each query looks its names up again, so it sees what Spark sees at that moment: new files, another schema, a table that
was dropped. DataFusion reads a table's files if it reads them as Spark does. Otherwise its rows come through Spark.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import datafusion
from datafusion import SessionContext
from datafusion.catalog import Catalog, Schema, Table

from sparkfusion.errors import UserError
from sparkfusion.runner.base import CatalogTable, ListedTable, SparkDataFrames
from sparkfusion.session.adopted_tables import AdoptedTables
from sparkfusion.session.external_statement import REFERENCE
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.linked_files import LinkedFiles
from sparkfusion.session.named_tables import find_table_names
from sparkfusion.session.object_stores import ObjectStores
from sparkfusion.session.parquet_footers import Footers, version_of, why_different
from sparkfusion.session.remote_files import place_of, read_remote_files
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.session_settings import DEFAULT_CATALOG, DEFAULT_SCHEMA, SessionSettings
from sparkfusion.session.sql_names import Name, split_name
from sparkfusion.session.sql_text import mask
from sparkfusion.session.table_names import is_unknown_table

T = TypeVar("T")
_OWN = ("datafusion", "public")
_NEVER_SPARKS = "information_schema"
_NOT_IN_SPARK = "Spark's catalog has no such table either"
SWITCHED_OFF = "sparkfusion.spark_catalog is off, so tables of Spark are not found"
"""Why a session on Spark does not look a name up in Spark."""
_MOST_KEPT = 64
_MOST_PARTS = 3
_USE = re.compile(rf"\s*USE\s+(?:(?:DATABASE|SCHEMA|NAMESPACE)\s+)?({REFERENCE.pattern})\s*;?\s*", re.IGNORECASE)
_WRITES = re.compile(
    rf"\s*(?:INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?|UPDATE\s+|DELETE\s+FROM\s+|MERGE\s+INTO\s+|TRUNCATE\s+(?:TABLE\s+)?)"
    rf"({REFERENCE.pattern})",
    re.IGNORECASE,
)
_MAKES = re.compile(
    rf"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+|UNBOUNDED\s+|EXTERNAL\s+)*(?:TABLE|(?P<view>VIEW))\s+"
    rf"(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{REFERENCE.pattern})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Kept:
    """A table that DataFusion reads, as long as Spark sees the same files and columns."""

    key: tuple[object, ...]
    dataframe: datafusion.DataFrame


class CatalogTables:
    """The tables of Spark's catalog, for the queries of one session. Any thread may call any method."""

    def __init__(
        self,
        context: SessionContext,
        settings: SessionSettings,
        schema: SessionSchema,
        of_spark: AdoptedTables,
        feeds: FeedTables,
        stores: ObjectStores,
        spark: SparkDataFrames | None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._schema = schema
        self._of_spark = of_spark
        self._feeds = feeds
        self._stores = stores
        self._spark = spark
        self._footers = Footers()
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self.links = LinkedFiles()

    def close(self) -> None:
        self._kept.clear()
        self.links.close()

    def read_statement(self, text: str, read: Callable[[], T]) -> T:
        """Read a statement. If it names a table that the session does not have, read it again with Spark's tables."""
        try:
            return read()
        except UserError as error:
            spark, way = self._spark, self._settings.ours.text("spark_catalog")
            if spark is None or not is_unknown_table(error.message):
                raise
            if way == "off":
                error.hint = "; ".join(filter(None, (error.hint, f"{SWITCHED_OFF}: set it to auto or to spark")))
                raise
            found = self._find_all(text, spark, native=way == "auto")
            if not found:
                error.hint = "; ".join(filter(None, (error.hint, _NOT_IN_SPARK)))
                raise
        with self._show_tables(found):
            try:
                return read()
            except UserError as error:
                if is_unknown_table(error.message):
                    error.hint = _NOT_IN_SPARK
                raise

    def is_used(self) -> bool:
        """Whether queries of this session find Spark's tables."""
        return self._spark_in_use() is not None

    def _spark_in_use(self) -> SparkDataFrames | None:
        return self._spark if self._settings.ours.text("spark_catalog") != "off" else None

    def use(self, statement: str) -> bool:
        """Run a USE on Spark, whose current database decides what names mean. Returns whether it was one."""
        used, spark = database_used(statement), self._spark_in_use()
        if used is None or spark is None:
            return False
        spark.catalog.use(used)
        return True

    def list_tables(self, database: str | None) -> list[ListedTable]:
        """Tables of a database of Spark's, and temporary views; none if queries do not find them."""
        spark = self._spark_in_use()
        if spark is None:
            if database is not None:
                raise UserError(
                    f"cannot list the tables of {database!r}: queries of this session do not use Spark's catalog",
                    hint="use sparkfusion.connect(spark), with sparkfusion.spark_catalog set to auto",
                )
            return []
        return spark.catalog.tables(database)

    def describe(self, dataframe: datafusion.DataFrame) -> list[str]:
        """For each table of Spark's catalog that a query reads, how it is read, and why."""
        return [
            described for each in (self.links, self._feeds, self._of_spark) for described in each.describe(dataframe)
        ]

    def _find_all(self, text: str, spark: SparkDataFrames, *, native: bool) -> dict[Name, Table]:
        masked = mask(text)
        written = _WRITES.match(masked)
        if written is not None:
            self._refuse_write(split_name(text[written.start(1) : written.end(1)]), spark)
        made = _MAKES.match(masked)
        skipped = split_name(text[made.start("name") : made.end("name")]) if made is not None else None
        found = {}
        for name in find_table_names(text):
            if name == skipped or self._is_own(name):
                continue
            table = spark.catalog.find(name)
            if table is None:
                continue
            if made is not None and made["view"]:
                raise _no_view(table.name)
            found[name] = Table(self._read(table, spark, native=native))
        return found

    def _refuse_write(self, target: Name, spark: SparkDataFrames) -> None:
        if len(target) <= _MOST_PARTS and not self._is_own(target) and spark.catalog.find(target) is not None:
            raise UserError(
                f"cannot write to {'.'.join(target)!r}: it is a table of Spark's catalog, which SQL of this session "
                "can only read",
                hint="DataFrame.write_spark_table writes the rows of a query; spark.sql runs other changes",
            )

    def _is_own(self, name: Name) -> bool:
        catalog, schema, table = self._place(name)
        if schema == _NEVER_SPARKS:
            return True
        try:
            return table in self._context.catalog(catalog).schema(schema).names()
        except KeyError:
            return False

    def _place(self, name: Name) -> tuple[str, str, str]:
        """Catalog, schema and table in this session."""
        default = (self._settings[DEFAULT_CATALOG], self._settings[DEFAULT_SCHEMA])
        catalog, schema, table = (*default[: 3 - len(name)], *name)
        return catalog, schema, table

    # ---- how a table is read

    def _read(self, table: CatalogTable, spark: SparkDataFrames, *, native: bool) -> datafusion.DataFrame:
        why = table.why_spark if native else "sparkfusion.spark_catalog is spark"
        own = place_of(table.files)
        place = self._stores.same_place(own) if own is not None else None
        if why is None and own is not None and place is None:
            why = _no_store(own)
        if why is None:
            why = self._why_different(table, spark)
        if why is None:
            return self._by_datafusion(table, place)
        return self._of_spark.read(table.name, spark.adopt(table.dataframe), spark.release, why)

    def _why_different(self, table: CatalogTable, spark: SparkDataFrames) -> str | None:
        try:
            footers = self._footers.read(table.files, spark.catalog.read_end)
        except Exception as error:  # of the system, or of pyarrow about a file that it cannot read
            return f"the footer of a file cannot be read ({str(error).splitlines()[0]})"
        reasons = (
            why_different(footer, table.schema, table.partitions, table.dates) for footer in dict.fromkeys(footers)
        )
        return next((reason for reason in reasons if reason is not None), None)

    def _by_datafusion(self, table: CatalogTable, place: str | None) -> datafusion.DataFrame:
        """All rows of its files. `place`: where the session finds them, if they are not on this machine."""
        versions = tuple(version_of(file) for file in table.files)
        key = (table.schema, table.partitions, table.files, table.origin, versions, place)
        with self._lock:
            kept = self._kept.pop(table.name, None)
            if kept is None or kept.key != key:
                kept = _Kept(key, self._read_files(table, place))
            self._kept[table.name] = kept
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return kept.dataframe

    def _read_files(self, table: CatalogTable, place: str | None) -> datafusion.DataFrame:
        if place is not None:
            return read_remote_files(self._feeds, table, place)
        return self.links.read(table.name, table.files, table.schema, table.partitions, table.origin)

    # ---- names, while a statement is read

    @contextmanager
    def _show_tables(self, found: Mapping[Name, Table]) -> Iterator[None]:
        """Let the names mean these tables: in this thread only, or, in schemas that are not the session's own, as long
        as the statement is read."""
        placed = {self._place(name): table for name, table in found.items()}
        own = {name: table for (*home, name), table in placed.items() if tuple(home) == _OWN}
        others = {place: table for place, table in placed.items() if place[:2] != _OWN}
        with ExitStack() as stack:
            stack.enter_context(self._schema.besides(own))
            if others:
                stack.enter_context(self._lock)
            for (catalog, schema, name), table in others.items():
                home = stack.enter_context(_schema_of(self._context, catalog, schema))
                if name not in home.names():
                    home.register_table(name, table)
                    stack.callback(home.deregister_table, name)
            yield


@contextmanager
def _schema_of(context: SessionContext, catalog: str, schema: str) -> Iterator[Schema]:
    """A schema of the session. If it is made for this, it is removed afterwards, unless something was made in it."""
    if catalog not in context.catalog_names():
        context.register_catalog_provider(catalog, Catalog.memory_catalog())
    home = context.catalog(catalog)
    made = schema not in home.names()
    if made:
        home.register_schema(schema, Schema.memory_schema())
    try:
        yield home.schema(schema)
    finally:
        if made and not home.schema(schema).names():
            home.deregister_schema(schema)


def database_used(statement: str) -> Name | None:
    """The database of a USE; None for another statement.

    >>> database_used('use schema "Shop" -- of today')
    ('Shop',)
    """
    found = _USE.fullmatch(mask(statement))
    return split_name(statement[found.start(1) : found.end(1)]) if found is not None else None


def _no_view(table: str) -> UserError:
    return UserError(
        f"cannot create a view over {table!r}: it is a table of Spark's catalog, and the view would keep the files "
        "that the table has now",
        hint="create the view in Spark, with spark.sql; or copy the rows: create table … as select …",
    )


def _no_store(place: str) -> str:
    scheme, _, bucket = place.partition("://")
    scheme = "s3" if scheme.startswith("s3") else scheme
    return (
        f"its files are at {place}, and this session has no object store for that: after "
        f"register_object_store('{scheme}://', …, '{bucket}') DataFusion reads them"
    )
