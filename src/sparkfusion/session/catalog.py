"""The methods of a session that register and read tables, views and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError, clean_message
from sparkfusion.extras import import_extra
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import Reader, WorkUnitFeedProvider
from sparkfusion.ids import new_query_id
from sparkfusion.session.adapted_methods import (
    passed_method,
    read_method,
    register_method,
    untyped_read_method,
    untyped_register_method,
)
from sparkfusion.session.adopted_tables import with_sizes
from sparkfusion.session.catalog_listing import SessionCatalog
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.feed_options import FeedArguments, resolve
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.skipping import check_on_error, skip_lines, skipping_table
from sparkfusion.session.table_names import name_hint


class TableMethods:
    """Methods of Session that DataFusion's SessionContext has too, with the same names and arguments."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    register_parquet = untyped_register_method(SessionContext.register_parquet)
    register_csv = untyped_register_method(SessionContext.register_csv)
    register_json = untyped_register_method(SessionContext.register_json)
    register_avro = untyped_register_method(SessionContext.register_avro)
    register_arrow = untyped_register_method(SessionContext.register_arrow)
    register_listing_table = untyped_register_method(SessionContext.register_listing_table)
    register_record_batches = register_method(SessionContext.register_record_batches)
    register_batch = register_method(SessionContext.register_batch)
    register_view = untyped_register_method(SessionContext.register_view)
    register_table = untyped_register_method(SessionContext.register_table)
    register_dataset = untyped_register_method(SessionContext.register_dataset)

    read_parquet = untyped_read_method(SessionContext.read_parquet)
    read_csv = untyped_read_method(SessionContext.read_csv)
    read_json = untyped_read_method(SessionContext.read_json)
    read_avro = untyped_read_method(SessionContext.read_avro)
    read_arrow = untyped_read_method(SessionContext.read_arrow)
    from_arrow = read_method(SessionContext.from_arrow)
    from_pandas = read_method(SessionContext.from_pandas)
    from_polars = read_method(SessionContext.from_polars)
    from_pydict = read_method(SessionContext.from_pydict)
    from_pylist = read_method(SessionContext.from_pylist)
    create_dataframe = read_method(SessionContext.create_dataframe)

    deregister_table = passed_method(SessionContext.deregister_table)
    table_exist = passed_method(SessionContext.table_exist)
    register_udaf = passed_method(SessionContext.register_udaf)
    register_udwf = passed_method(SessionContext.register_udwf)
    enable_spark_functions = passed_method(SessionContext.enable_spark_functions)
    deregister_udf = passed_method(SessionContext.deregister_udf)
    deregister_udaf = passed_method(SessionContext.deregister_udaf)
    deregister_udwf = passed_method(SessionContext.deregister_udwf)

    catalog_names = passed_method(SessionContext.catalog_names)
    session_id = passed_method(SessionContext.session_id)
    session_start_time = passed_method(SessionContext.session_start_time)
    enable_ident_normalization = passed_method(SessionContext.enable_ident_normalization)
    udf = passed_method(SessionContext.udf)
    udfs = passed_method(SessionContext.udfs)
    udaf = passed_method(SessionContext.udaf)
    udafs = passed_method(SessionContext.udafs)
    udwf = passed_method(SessionContext.udwf)
    udwfs = passed_method(SessionContext.udwfs)

    def read_batch(self, batch: pa.RecordBatch) -> DataFrame:
        """A DataFrame of a record batch, without a table in the catalog.

        >>> session.read_batch(pa.record_batch({"n": [1, 2]})).to_pydict()
        {'n': [1, 2]}
        """
        return self.read_batches([batch])

    def read_batches(self, batches: Iterable[pa.RecordBatch]) -> DataFrame:
        """A DataFrame of record batches with one schema, without a table in the catalog.

        >>> session.read_batches(pa.record_batch({"n": [n]}) for n in (1, 2)).to_pydict()
        {'n': [1, 2]}
        """
        found = list(batches)
        try:
            rows = pa.Table.from_batches(found, found[0].schema if found else pa.schema([]))
        except pa.ArrowInvalid as error:
            raise UserError(f"cannot read the batches: {error}", hint="cast them to one schema first") from error
        return self.from_arrow(rows)

    def read_table(self, table: Any) -> DataFrame:
        """The DataFrame of a table object: one of a catalog, of `DataFrame.into_view`, or a pyarrow dataset.

        >>> session.read_table(session.catalog().schema().table("orders")).count()
        3
        """
        name = f"sparkfusion_rows_{new_query_id()}"
        try:
            self.register_table(name, table)
        except UserError as error:
            hint = "pass a table of a catalog, DataFrame.into_view(), a DataFrame or a pyarrow dataset"
            raise UserError(f"cannot read a {type(table).__name__} as a table", hint=hint) from error
        try:
            return self._dataframe(self._engine.tables.read_names(name, lambda: self._engine.context.table(name)))
        finally:
            self._engine.context.deregister_table(name)

    def empty_table(self) -> DataFrame:
        """A DataFrame without columns. As in DataFusion, it has one row.

        >>> session.empty_table().with_column("one", lit(1)).to_pydict()
        {'one': [1]}
        """
        return self._dataframe(self._engine.context.empty_table())

    def read_empty(self) -> DataFrame:
        """The same as `empty_table`.

        >>> session.read_empty().columns
        []
        """
        return self.empty_table()

    def catalog(self, name: str = "datafusion") -> SessionCatalog:
        """DataFusion's catalog of that name. Its `tables()` also lists what queries find in Spark's catalog.

        >>> session.catalog().tables()["table_name"].to_pylist()
        ['orders']
        """
        inner = call_datafusion(self._engine.context.catalog, name)
        return SessionCatalog(name, inner, self._engine.tables.of_catalog.list_tables)

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
            rows: about how many rows it has. Without `rows` and `bytes` it counts as large.
            bytes: about how large it is.
            headers: the provider and the readers find them in `context.headers`.
            on_error: for CSV and JSON files: "fail", or "skip" to skip lines that cannot be read.
            options: of the format, as in `register_csv` and the like.

        >>> import sparkfusion
        >>> class Files(sparkfusion.WorkUnitFeedProvider):
        ...     def feed(self, partition, context):
        ...         yield sparkfusion.FileUnit("orders.parquet")
        >>> session.register_feed("files", Files(), schema=orders.schema(), format="parquet")
        >>> session.table("files").count()
        3
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
        """Register a scalar function. Plans contain it, so you need not register it on workers.

        >>> import pyarrow.compute as pc
        >>> from sparkfusion import udf
        >>> session.register_udf(udf(lambda n: pc.multiply(n, 2), [pa.int64()], pa.int64(), "immutable", "twice"))
        >>> session.sql("select twice(id) as n from orders order by id").to_pydict()
        {'n': [2, 4, 6]}
        """
        call_datafusion(self._engine.context.register_udf, udf)

    def register_spark_udf(self, name: str, function: Any, input_types: Sequence[pa.DataType] | None = None) -> None:
        """Register a Python function of Spark, on any runner and for both dialects.

        PySpark cannot look up a function by its name in Spark, so the function itself is needed. Plain
        functions are called for each row, functions of pandas Series and of Arrow arrays for each batch.

        Args:
            function: what `spark.udf.register`, `udf`, `pandas_udf` or `arrow_udf` returned.
            input_types: the types of its arguments. Leave it out if a plain function has hints such as `int` and `str`.

        >>> from pyspark.sql.functions import udf
        >>> from pyspark.sql.types import IntegerType
        >>> session.register_spark_udf("letters", udf(lambda text: len(text), IntegerType()), [pa.string()])
        >>> session.sql("select letters(city) as n from orders where id = 1").to_pydict()
        {'n': [4]}
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

        >>> from datafusion.object_store import AmazonS3
        >>> session.register_object_store("s3://", lambda: AmazonS3(bucket_name="logs", region="eu-west-1"), "logs")
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
