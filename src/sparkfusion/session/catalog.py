"""The registering half of a session: tables, views and functions, all kept by DataFusion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError, clean_message
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import Reader, WorkUnitFeedProvider
from sparkfusion.session.directory_tables import DirectoryTables, parse_external, registered
from sparkfusion.session.feed_options import FeedArguments, resolve
from sparkfusion.session.file_tables import FORMATS, arrange, read_files, register_files
from sparkfusion.session.forked import check_not_forked
from sparkfusion.session.frame import DataFrame
from sparkfusion.session.host_tables import sized
from sparkfusion.session.lossy import UNNAMED, lost_options
from sparkfusion.session.null_views import makes_of_rows, null_views
from sparkfusion.session.object_stores import ObjectStores
from sparkfusion.session.signatures import describe_method
from sparkfusion.session.skipping import check_on_error, skip_lines, skipping_table
from sparkfusion.session.skipping_statement import parse_on_error
from sparkfusion.session.statements import lossy_external_table, makes_or_drops_tables
from sparkfusion.session.table_names import call_with_tables, name_hint
from sparkfusion.session.table_writes import write_table
from sparkfusion.session.verbs import call_datafusion, unwrap
from sparkfusion.session.write_modes import WriteMode

if TYPE_CHECKING:
    from sparkfusion.runner.base import Runner
    from sparkfusion.session.config import SessionSettings
    from sparkfusion.session.planner import Planner
    from sparkfusion.session.session_schema import SessionSchema

T = TypeVar("T")


_OF_ROWS = frozenset({"register_record_batches", "register_batch"})


def _register(name: str) -> Callable[..., None]:
    """A method that registers a table under its first argument; its errors name the table and the path."""
    original = getattr(SessionContext, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: CatalogMethods, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> None:
        check_not_forked()
        skip = check_on_error(on_error, FORMATS.get(name))
        bound = signature.bind(self.context, *args, **kwargs)
        _, table, source, *_ = bound.arguments.values()
        if (missing := _missing_path(source)) is not None:
            raise UserError(f"cannot register table {table!r}: no file or directory at {missing!r}")
        arguments = {key: unwrap(value) for key, value in bound.arguments.items() if key != "self"}
        try:
            if skip:
                files, options = skipping_table(name, arguments, self._object_stores.prepare, hive=hive)
                self._planner.feeds.register(self.context, table, WorkUnitFeed(files), options)
                arguments = {}
            elif name in FORMATS:
                arranged = arrange(name, arguments, self._object_stores.prepare, hive=hive)
                arguments = register_files(self.context, original, arranged)
            else:
                original(self.context, **arguments)
        except Exception as error:
            shown = f" from {str(source)!r}" if isinstance(source, str | PathLike) else ""
            words = error.message if isinstance(error, SparkfusionError) else clean_message(error)
            hint = (error.hint if isinstance(error, SparkfusionError) else None) or name_hint(words, self.context)
            raise UserError(f"cannot register table {table!r}{shown}: {words}", hint=hint) from error
        self._planner.lossy_tables.add(table, lost_options(arguments))
        if not skip and name in FORMATS and (made := registered(name, FORMATS[name], arguments)) is not None:
            self.directory_tables.add(table, made)
        if name in FORMATS:
            self._planner.file_places.add(table, source)
        if name in _OF_ROWS:
            self._planner.memory_tables.adopt([table])

    describe_method(method, original, FORMATS.get(name))
    return method


def _read(name: str) -> Callable[..., DataFrame]:
    """A method that makes a DataFrame of files or rows."""
    original = getattr(SessionContext, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: CatalogMethods, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> DataFrame:
        check_not_forked()
        skip = check_on_error(on_error, FORMATS.get(name))
        arguments = dict(signature.bind(self.context, *args, **kwargs).arguments)
        missing = _missing_path(arguments["path"]) if name.startswith("read_") else None
        if missing is not None:
            raise UserError(f"cannot read: no file or directory at {missing!r}")
        if skip:
            del arguments["self"]
            return self._skipping_frame(name, arguments, hive=hive)
        if name in FORMATS:
            del arguments["self"]
            arranged = call_datafusion(arrange, name, arguments, self._object_stores.prepare, hive=hive)
            made, arguments = call_datafusion(read_files, self.context, original, arranged)
        else:
            made = call_with_tables(self.context, original, self.context, *args, **kwargs)
            table = made.logical_plan().to_variant().table_name()
            self._planner.memory_tables.adopt([table])
            made = self.read_names(table, lambda: call_datafusion(self.context.table, f'"{table}"'), made)
            if arguments.get("name") is None:  # DataFusion made a name up, which nobody knows
                self.context.deregister_table(f'"{table}"')
        self._planner.lossy_tables.add(UNNAMED, lost_options(arguments))
        return self._frame(made)

    describe_method(method, original, FORMATS.get(name))
    return method


def _pass_on(name: str) -> Callable[..., Any]:
    original = getattr(SessionContext, name)

    @functools.wraps(original)
    def method(self: CatalogMethods, *args: Any, **kwargs: Any) -> Any:
        return call_datafusion(original, self.context, *args, **kwargs)

    return method


class CatalogMethods:
    """Methods of Session that DataFusion's SessionContext has too, with the same names and arguments."""

    context: SessionContext
    _planner: Planner
    _runner: Runner
    _object_stores: ObjectStores
    _schema: SessionSchema
    config: SessionSettings
    directory_tables: DirectoryTables

    register_parquet = _register("register_parquet")
    register_csv = _register("register_csv")
    register_json = _register("register_json")
    register_avro = _register("register_avro")
    register_arrow = _register("register_arrow")
    register_listing_table = _register("register_listing_table")
    register_record_batches = _register("register_record_batches")
    register_batch = _register("register_batch")
    register_view = _register("register_view")
    register_table = _register("register_table")
    register_dataset = _register("register_dataset")

    read_parquet = _read("read_parquet")
    read_csv = _read("read_csv")
    read_json = _read("read_json")
    read_avro = _read("read_avro")
    read_arrow = _read("read_arrow")
    from_arrow = _read("from_arrow")
    from_pandas = _read("from_pandas")
    from_polars = _read("from_polars")
    from_pydict = _read("from_pydict")
    from_pylist = _read("from_pylist")
    create_dataframe = _read("create_dataframe")

    deregister_table = _pass_on("deregister_table")
    table_exist = _pass_on("table_exist")
    catalog = _pass_on("catalog")
    register_udaf = _pass_on("register_udaf")
    register_udwf = _pass_on("register_udwf")
    enable_spark_functions = _pass_on("enable_spark_functions")
    deregister_udf = _pass_on("deregister_udf")
    deregister_udaf = _pass_on("deregister_udaf")
    deregister_udwf = _pass_on("deregister_udwf")

    def register_spark(self, name: str, source: Any, *, rows: int | None = None, bytes: int | None = None) -> None:
        """Register a Spark DataFrame, or a Spark table or view by its name, as a table. The session must run on Spark.

        Executors pass its partitions to the tasks as Arrow batches. Spark computes it again for each query that reads
        it, and only the columns that the query needs. Spark also applies those of the query's filters and limits that
        mean the same there; `explain` shows them.

        Args:
            rows: about how many rows it has, if you know better than Spark's optimizer. `bytes`: about how large it is.
                A small table is broadcast to every task of a join.
        """
        table = sized(self._runner.adopt(source), rows, bytes)
        try:
            self._planner.host_tables.register(self.context, name, table, self._runner.release)
        except UserError:
            raise
        except Exception as error:
            words = clean_message(error)
            raise UserError(f"cannot register table {name!r}: {words}", hint=name_hint(words, self.context)) from error

    def register_feed(
        self,
        name: str,
        provider: WorkUnitFeedProvider | WorkUnitFeed,
        *,
        schema: pa.Schema | None = None,
        format: str | None = None,
        reader: Reader | None = None,
        partition_columns: Sequence[str | tuple[str, pa.DataType]] = (),
        partitions: int | None = None,
        tasks: int | None = None,
        rows: int | None = None,
        bytes: int | None = None,
        headers: Mapping[str, str] | None = None,
        on_error: str = "fail",
        **options: Any,
    ) -> None:
        """Register a feed: a table whose files, pages or other work units are found while a query runs.

        Args:
            provider: finds the work units, in this process. Its own `schema()`, `format`, `reader`, `partitions`,
                `tasks`, `rows`, `bytes` and `partition_columns` are the defaults of the arguments below.
            schema: the table's columns.
            format: for units that are files: parquet, csv, json, arrow or avro. DataFusion scans them natively.
            reader: for other units: turns a unit into record batches, in the tasks.
            partition_columns: columns whose values come with the units (as in Hive directories): their names if the
                schema has them, else names and types. They are the last columns of the table.
            partitions: for a partitioned feed, the number of partitions: `feed` is called once for each.
            tasks: how many tasks read it. None means one for each slot of the runner.
            rows, bytes: about how large it is. Without them it counts as large.
            headers: the provider and the readers find them in `context.headers`.
            on_error: for CSV and JSON files: "fail", or "skip" to skip lines that cannot be read.
            options: of the format, as in `register_csv` and the like.
        """
        feed = provider if isinstance(provider, WorkUnitFeed) else WorkUnitFeed(provider)
        if not feed.is_local:
            raise UserError(
                f"cannot register feed {name!r}: it was registered in another process, and its provider is not here"
            )
        said = FeedArguments(
            schema, format, reader, partition_columns, partitions, tasks, rows, bytes, dict(headers or {}), options
        )
        resolved = resolve(name, feed.inner(), said)
        if check_on_error(on_error, resolved.format):
            resolved = skip_lines(resolved)
        self._planner.feeds.register(self.context, name, feed, resolved)

    def register_udf(self, udf: datafusion.ScalarUDF) -> None:
        """Register a scalar function. Plans contain it, so you need not register it on workers."""
        call_datafusion(self.context.register_udf, udf)

    def register_object_store(self, schema: str, store: Any, host: str | None = None) -> None:
        """Let this session's queries and tasks read URLs of a scheme.

        Args:
            schema: the scheme with its slashes, such as `s3://`.
            store: one of `datafusion.object_store`, or a function without arguments that creates one. On Spark and on
                workers it must be a function, because a store cannot be sent to other processes.
            host: the bucket, if the store does not know it.
        """
        call_datafusion(self._object_stores.add, self.context, schema, store, host)

    def read_names(self, text: str, read: Callable[[], T], otherwise: T | None = None) -> T:
        """Read a query or a name, where names of large in-memory tables mean them by reference, and those of tables
        that have got NULL partitions show these as NULL.

        If there are none, or what the text says can be said of the tables themselves only, it is read as it is.
        """
        check_not_forked()
        settings, tables = self.config.ours, self._planner.memory_tables
        if makes_or_drops_tables(text):
            views = null_views(self.directory_tables, text) if makes_of_rows(text) else {}
            with tables.made_by(text), self._schema.as_they_are(), self._schema.instead(views):
                return read()
        with tables.made_by(text):
            views = tables.views(text, settings.integer("memory_table_bytes"))
            views |= null_views(self.directory_tables, text)
            if views:
                with suppress(SparkfusionError), self._schema.instead(views):
                    return read()
            return read() if otherwise is None else otherwise

    def keep_rows(self, rows: pa.Table) -> datafusion.DataFrame:
        """A frame of rows, by reference if they are large, without a table in the user's catalog."""
        return self._planner.memory_tables.frame_of(rows, self.config.ours.integer("memory_table_bytes"))

    def write_table(self, frame: DataFrame, name: str, mode: WriteMode) -> int:
        """Used by `DataFrame.write_table`, which says what it does."""
        return write_table(cast("Any", self), frame, name, mode)

    @contextmanager
    def noting_tables(self, statement: str) -> Iterator[None]:
        """Remember of a table that the statement makes of files what its plans do not tell."""
        said = parse_on_error(statement)
        plain = said.plain if said is not None else statement
        skips = said is not None and said.on_error == "skip"
        lossy, external = lossy_external_table(plain), parse_external(plain) if not skips else None
        before = self.directory_tables.meant_by(external[0]) if external is not None else None
        yield
        if lossy is not None:
            self._planner.lossy_tables.add(*lossy)
        if external is not None:
            self.directory_tables.add(*external, before)
            if self.directory_tables.meant_by(external[0]) is not before:
                self._planner.file_places.add(external[0], external[1].target.path)

    def _skipping_frame(self, method: str, arguments: dict[str, Any], *, hive: bool) -> DataFrame:
        """A frame over files without a table in the user's catalog; it bears the name of the path."""
        files, options = call_datafusion(skipping_table, method, arguments, self._object_stores.prepare, hive=hive)
        path = arguments["path"]
        name = Path(str(path[0] if isinstance(path, list) else path)).name.replace('"', '""')
        read = self._planner.feeds.read(f'"{name}"', WorkUnitFeed(files), options)
        return self._frame(self.context.create_dataframe_from_logical_plan(read.logical_plan()))

    def _frame(self, inner: datafusion.DataFrame) -> DataFrame:
        return DataFrame(cast("Any", self), inner)


def _missing_path(source: object) -> str | None:
    """The first path of a source where nothing is. DataFusion takes a missing directory for an empty one; a user
    would look for the rows."""
    for path in source if isinstance(source, list) else [source]:
        if isinstance(path, str | PathLike) and _is_missing(str(path)):
            return str(path)
    return None


def _is_missing(path: str) -> bool:
    return "://" not in path and not any(mark in path for mark in "*?[") and not Path(path).exists()
