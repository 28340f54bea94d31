"""The methods of a session that register and read tables, views and functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError, clean_message
from sparkfusion.extras import import_extra
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import Reader, WorkUnitFeedProvider
from sparkfusion.session.adopted_tables import with_sizes
from sparkfusion.session.catalog_listing import SessionCatalog
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.datafusion_calls import call_datafusion, unwrap
from sparkfusion.session.directory_tables import directory_table_of
from sparkfusion.session.engine import Engine
from sparkfusion.session.feed_options import FeedArguments, resolve
from sparkfusion.session.file_tables import FORMATS, arrange, read_files, register_files
from sparkfusion.session.forked import check_not_forked
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.lossy import UNNAMED, lost_options
from sparkfusion.session.skipping import check_on_error, skip_lines, skipping_table
from sparkfusion.session.table_names import call_with_tables, name_hint

_SKIPPING = ("csv", "json")
_HIVE = inspect.Parameter("hive", inspect.Parameter.KEYWORD_ONLY, default=True, annotation="bool")
_ON_ERROR = inspect.Parameter("on_error", inspect.Parameter.KEYWORD_ONLY, default="fail", annotation="str")
_HIVE_TEXT = "hive: whether directories named `column=value` give columns."
_ON_ERROR_TEXT = 'on_error: "fail", or "skip" to leave out lines that cannot be read; the query tells how many.'
_OF_ROWS = frozenset({"register_record_batches", "register_batch"})


def _register(name: str) -> Callable[..., None]:
    """A method that registers a table under its first argument; its errors name the table and the path."""
    original = getattr(SessionContext, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: TableMethods, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> None:
        check_not_forked()
        context, tables = self._engine.context, self._engine.tables
        skip = check_on_error(on_error, FORMATS.get(name))
        bound = signature.bind(context, *args, **kwargs)
        _, table, source, *_ = bound.arguments.values()
        if (missing := _missing_path(source)) is not None:
            raise UserError(f"cannot register table {table!r}: no file or directory at {missing!r}")
        arguments = {key: unwrap(value) for key, value in bound.arguments.items() if key != "self"}
        try:
            if skip:
                files, options = skipping_table(name, arguments, tables.prepare, hive=hive)
                tables.feeds.register(context, table, WorkUnitFeed(files), options)
                arguments = {}
            elif name in FORMATS:
                arranged = arrange(name, arguments, tables.prepare, hive=hive)
                arguments = register_files(context, original, arranged)
            else:
                original(context, **arguments)
        except Exception as error:
            shown = f" from {str(source)!r}" if isinstance(source, str | PathLike) else ""
            words = error.message if isinstance(error, SparkfusionError) else clean_message(error)
            hint = (error.hint if isinstance(error, SparkfusionError) else None) or name_hint(words, context)
            raise UserError(f"cannot register table {table!r}{shown}: {words}", hint=hint) from error
        tables.lossy.add(table, lost_options(arguments))
        if not skip and name in FORMATS and (made := directory_table_of(name, FORMATS[name], arguments)) is not None:
            tables.directories.add(table, made)
        if name in FORMATS:
            tables.vanished_files.add(table, source)
        if name in _OF_ROWS:
            tables.in_memory.adopt([table])

    _describe_method(method, original, FORMATS.get(name))
    return method


def _read(name: str) -> Callable[..., DataFrame]:
    """A method that makes a DataFrame of files or rows."""
    original = getattr(SessionContext, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def method(self: TableMethods, *args: Any, hive: bool = True, on_error: str = "fail", **kwargs: Any) -> DataFrame:
        check_not_forked()
        context, tables = self._engine.context, self._engine.tables
        skip = check_on_error(on_error, FORMATS.get(name))
        arguments = dict(signature.bind(context, *args, **kwargs).arguments)
        missing = _missing_path(arguments["path"]) if name.startswith("read_") else None
        if missing is not None:
            raise UserError(f"cannot read: no file or directory at {missing!r}")
        if skip:
            del arguments["self"]
            return self._skipping_dataframe(name, arguments, hive=hive)
        if name in FORMATS:
            del arguments["self"]
            arranged = call_datafusion(arrange, name, arguments, tables.prepare, hive=hive)
            made, arguments = call_datafusion(read_files, context, original, arranged)
        else:
            made = call_with_tables(context, original, context, *args, **kwargs)
            table = made.logical_plan().to_variant().table_name()
            tables.in_memory.adopt([table])
            made = tables.read_names(table, lambda: call_datafusion(context.table, f'"{table}"'), made)
            if arguments.get("name") is None:  # DataFusion made a name up, which nobody knows
                context.deregister_table(f'"{table}"')
        tables.lossy.add(UNNAMED, lost_options(arguments))
        return self._dataframe(made)

    _describe_method(method, original, FORMATS.get(name))
    return method


def _pass_on(name: str) -> Callable[..., Any]:
    original = getattr(SessionContext, name)

    @functools.wraps(original)
    def method(self: TableMethods, *args: Any, **kwargs: Any) -> Any:
        return call_datafusion(original, self._engine.context, *args, **kwargs)

    return method


def _describe_method(method: Callable[..., Any], original: Callable[..., Any], format: str | None) -> None:
    """Give a method of a session its signature: the original's arguments, and ours for files of this format."""
    if format is None:
        return
    added = {_HIVE: _HIVE_TEXT} | ({_ON_ERROR: _ON_ERROR_TEXT} if format in _SKIPPING else {})
    signature = inspect.signature(original)
    known = list(signature.parameters.values())
    method.__dict__["__signature__"] = signature.replace(parameters=[*known, *added])
    own = "\n".join(f"    {text}" for text in added.values())
    method.__doc__ = f"{inspect.cleandoc(original.__doc__ or '')}\n\nArguments of sparkfusion's own:\n{own}\n"


class TableMethods:
    """Methods of Session that DataFusion's SessionContext has too, with the same names and arguments."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

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
    register_udaf = _pass_on("register_udaf")
    register_udwf = _pass_on("register_udwf")
    enable_spark_functions = _pass_on("enable_spark_functions")
    deregister_udf = _pass_on("deregister_udf")
    deregister_udaf = _pass_on("deregister_udaf")
    deregister_udwf = _pass_on("deregister_udwf")

    def catalog(self, name: str = "datafusion") -> SessionCatalog:
        """DataFusion's catalog of that name. Its `tables()` also lists what queries find in Spark's catalog."""
        inner = call_datafusion(self._engine.context.catalog, name)
        return SessionCatalog(name, inner, self._engine.tables.of_catalog.listed)

    def register_spark(self, name: str, source: Any, *, rows: int | None = None, bytes: int | None = None) -> None:
        """Register a Spark DataFrame, or a Spark table or view by its name, as a table. The session must run on Spark.

        Executors pass its partitions to the tasks as Arrow batches. Spark computes it again for each query that reads
        it, and only the columns that the query needs. Spark also applies those of the query's filters and limits that
        mean the same there; `explain` shows them.

        Args:
            rows: about how many rows it has, if you know better than Spark's optimizer. `bytes`: about how large it is.
                A small table is broadcast to every task of a join.
        """
        spark = self._engine.on_spark(f"cannot register a {type(source).__qualname__}")
        table = with_sizes(spark.adopt(source), rows, bytes)
        try:
            self._engine.tables.of_spark.register(self._engine.context, name, table, spark.release)
        except UserError:
            raise
        except Exception as error:
            words = clean_message(error)
            raise UserError(
                f"cannot register table {name!r}: {words}", hint=name_hint(words, self._engine.context)
            ) from error

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
        self._engine.tables.feeds.register(self._engine.context, name, feed, resolved)

    def register_udf(self, udf: datafusion.ScalarUDF) -> None:
        """Register a scalar function. Plans contain it, so you need not register it on workers."""
        call_datafusion(self._engine.context.register_udf, udf)

    def register_spark_udf(self, name: str, function: Any, input_types: Sequence[pa.DataType] | None = None) -> None:
        """Register a Python function of Spark, on any runner and for both dialects.

        PySpark cannot look up a function by its name in Spark, so the function itself is needed. Plain
        functions are called for each row, functions of pandas Series and of Arrow arrays for each batch.

        Args:
            function: what `spark.udf.register`, `udf`, `pandas_udf` or `arrow_udf` returned.
            input_types: the types of its arguments. Leave it out if a plain function has hints such as `int` and `str`.
        """
        import_extra("pyspark", "spark", "register_spark_udf")
        from sparkfusion.runner.spark.spark_udfs import scalar_udf

        self.register_udf(scalar_udf(name, function, input_types))

    def register_object_store(self, schema: str, store: Any, host: str | None = None) -> None:
        """Let this session's queries and tasks read URLs of a scheme.

        Args:
            schema: the scheme with its slashes, such as `s3://`.
            store: one of `datafusion.object_store`, or a function without arguments that creates one. On Spark and on
                workers it must be a function, because a store cannot be sent to other processes.
            host: the bucket, if the store does not know it.
        """
        call_datafusion(self._engine.tables.object_stores.add, self._engine.context, schema, store, host)

    def _skipping_dataframe(self, method: str, arguments: dict[str, Any], *, hive: bool) -> DataFrame:
        """A DataFrame over files without a table in the user's catalog; its name is the path."""
        files, options = call_datafusion(skipping_table, method, arguments, self._engine.tables.prepare, hive=hive)
        path = arguments["path"]
        name = Path(str(path[0] if isinstance(path, list) else path)).name.replace('"', '""')
        read = self._engine.tables.feeds.read(f'"{name}"', WorkUnitFeed(files), options)
        return self._dataframe(self._engine.context.create_dataframe_from_logical_plan(read.logical_plan()))

    def _dataframe(self, inner: datafusion.DataFrame) -> DataFrame:
        return DataFrame(self._engine, LazyQuery(inner))


def _missing_path(source: object) -> str | None:
    """The first path of a source that does not exist. DataFusion treats a missing directory like an empty one, and a
    user would wonder where the rows are."""
    for path in source if isinstance(source, list) else [source]:
        if isinstance(path, str | PathLike) and _is_missing(str(path)):
            return str(path)
    return None


def _is_missing(path: str) -> bool:
    return "://" not in path and not any(mark in path for mark in "*?[") and not Path(path).exists()
