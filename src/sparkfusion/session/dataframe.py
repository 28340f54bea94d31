"""DataFrame: a lazy query. Verbs build it up in DataFusion; actions plan it, distribute it and run it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa
from datafusion.dataframe import DataFrameWriteOptions, ParquetWriterOptions

from sparkfusion.extras import import_extra
from sparkfusion.plan.stage import Distribution
from sparkfusion.runner.base import SparkWrite
from sparkfusion.session.chains import check_chains
from sparkfusion.session.datafusion_calls import call_datafusion, unwrap
from sparkfusion.session.engine import Engine
from sparkfusion.session.explaining import ExplainFormat, explain_query
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.query import RunningQuery
from sparkfusion.session.spark_writes import write_spark_table
from sparkfusion.session.table_writes import write_table
from sparkfusion.session.write import WriteTarget, copy_tail
from sparkfusion.session.write_modes import WriteMode, check_mode, refuse_mode

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyspark.sql

_DEFAULT_LEVELS = {"zstd": 3, "gzip": 6, "brotli": 1}


def _verb(name: str) -> Callable[..., DataFrame]:
    """A method that calls DataFusion's method of that name; documented and signed like it."""
    original = getattr(datafusion.DataFrame, name)

    @functools.wraps(original)
    def verb(self: DataFrame, *args: Any, **kwargs: Any) -> DataFrame:
        for text in (value for value in args if isinstance(value, str)):
            check_chains(text)
        named = {key: unwrap(value) for key, value in kwargs.items()}
        return self._with(call_datafusion(original, self.to_datafusion(), *map(unwrap, args), **named))

    return verb


class DataFrame:
    """A query over a session's tables, with the method names of datafusion-python. Nothing runs until an action."""

    def __init__(self, engine: Engine, query: LazyQuery) -> None:
        """Sessions make them: `Session.sql`, `table`, `read_parquet` and the like."""
        self._engine = engine
        self._query = query

    def _with(self, inner: datafusion.DataFrame) -> DataFrame:
        return DataFrame(self._engine, LazyQuery(inner))

    # ---- verbs, by DataFusion

    aggregate = _verb("aggregate")
    alias = _verb("alias")
    cast = _verb("cast")
    describe = _verb("describe")
    distinct = _verb("distinct")
    distinct_on = _verb("distinct_on")
    drop = _verb("drop")
    except_all = _verb("except_all")
    fill_nan = _verb("fill_nan")
    fill_null = _verb("fill_null")
    filter = _verb("filter")
    head = _verb("head")
    intersect = _verb("intersect")
    join = _verb("join")
    join_on = _verb("join_on")
    limit = _verb("limit")
    repartition = _verb("repartition")
    repartition_by_hash = _verb("repartition_by_hash")
    select = _verb("select")
    select_exprs = _verb("select_exprs")
    sort = _verb("sort")
    sort_by = _verb("sort_by")
    tail = _verb("tail")
    union = _verb("union")
    union_by_name = _verb("union_by_name")
    union_distinct = _verb("union_distinct")
    unnest_columns = _verb("unnest_columns")
    window = _verb("window")
    with_column = _verb("with_column")
    with_column_renamed = _verb("with_column_renamed")
    with_columns = _verb("with_columns")

    def transform(self, func: Any, *args: Any) -> DataFrame:
        """Apply a function DataFrame → DataFrame, so that verbs can be chained."""
        result = func(self, *args)
        if not isinstance(result, DataFrame):
            raise TypeError(f"the function must return a DataFrame, not {type(result).__name__}")
        return result

    def cache(self) -> DataFrame:
        """Run the query now and keep its rows in memory."""
        return self._with(self._engine.tables.keep_rows(self.collect()))

    # ---- what it is

    def schema(self) -> pa.Schema:
        return self._query.inner.schema()

    def to_datafusion(self) -> datafusion.DataFrame:
        """DataFusion's DataFrame underneath; its own actions run on a single node."""
        return self._query.inner

    def logical_plan(self) -> datafusion.plan.LogicalPlan:
        return self._query.inner.logical_plan()

    def col(self, name: str) -> datafusion.Expr:
        return self._query.inner.col(name)

    column = col

    def __getitem__(self, key: str | list[str] | tuple[str, ...]) -> DataFrame:
        return self.select(key) if isinstance(key, str) else self.select(*key)

    def distribution(self) -> Distribution:
        """How the query would run: its stage graph, or the reason why it runs on a single node."""
        return self._engine.plan(self._query).distribution

    # ---- actions

    def stream(self) -> RunningQuery:
        """Start the query and return its record batches as they are ready. Close the stream to stop the query."""
        return self._engine.start(self._query)

    def collect(self) -> pa.Table:
        """Run the query and return all rows."""
        return self.stream().read_all()

    to_arrow = collect
    to_arrow_table = collect

    def to_pandas(self) -> pd.DataFrame:
        import_extra("pandas", "pandas", "to_pandas")
        return self.collect().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        import_extra("polars", "polars", "to_polars")
        import polars as pl

        dataframe = pl.from_arrow(self.collect())
        return dataframe if isinstance(dataframe, pl.DataFrame) else dataframe.to_frame()

    def to_spark(self) -> pyspark.sql.DataFrame:
        """The result as a Spark DataFrame, if the session runs on Spark.

        It is lazy: Spark computes it on the executors whenever it needs the rows. If that could give other rows each
        time (LIMIT, `random()`), if the query is not distributed, or if the session is one of Spark Connect, it runs
        once, now. If Spark's adaptive execution is on, Spark also runs the shuffles inside of registered DataFrames
        now.
        """
        dataframe: pyspark.sql.DataFrame = self._engine.to_spark(self._query)
        return dataframe

    def to_pylist(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.collect().to_pylist()
        return rows

    def to_pydict(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = self.collect().to_pydict()
        return columns

    def count(self) -> int:
        """The number of rows."""
        counted = self.aggregate([], [datafusion.functions.count_star()])
        return int(counted.collect().column(0)[0].as_py())

    def show(self, num: int = 20) -> None:
        """Print the first rows as a table."""
        self._local(self.limit(num).collect()).show(num)

    def _repr_html_(self) -> str:
        return self._local(self.limit(100).collect())._repr_html_()

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema())
        return f"DataFrame[{columns}]"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream, for any library that reads one. The query runs while it is read."""
        running = self.stream()
        first = list(itertools.islice(running, 1))  # settles the schema
        reader = pa.RecordBatchReader.from_batches(running.schema, itertools.chain(first, running))
        return reader.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self.stream() as running:
            yield from running

    def explain(self, *, analyze: bool = False, format: ExplainFormat = "text") -> None:
        """Print the stage tree; with `analyze`, run the query and print what each stage and operator did."""
        print(self.explain_text(analyze=analyze, format=format))

    def explain_text(self, *, analyze: bool = False, format: ExplainFormat = "text") -> str:
        """What `explain` prints."""
        return explain_query(self._engine, self._query, analyze=analyze, format=format)

    # ---- writing

    def write_parquet(
        self,
        path: str | PathLike[str],
        compression: str | datafusion.dataframe.Compression | ParquetWriterOptions = "zstd",
        compression_level: int | None = None,
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as Parquet: one file if the path has an extension, else a directory. Returns the row count.

        Args:
            mode: what to do if the target exists. "append" adds files to a directory. "overwrite" replaces the target
                when all rows are written; the query may read the data that it replaces. "error" raises. "ignore" writes
                nothing and returns 0. By default files are added to a directory, and a file is replaced.
            write_options: DataFusion's own options. With them DataFusion's writer is used, which has no modes.
        """
        if write_options is not None or isinstance(compression, ParquetWriterOptions):
            return self._write_single_node(mode, "write_parquet", path, compression, compression_level, write_options)
        name = compression if isinstance(compression, str) else str(compression.value)
        level = compression_level if compression_level is not None else _DEFAULT_LEVELS.get(name)
        options = {"format.compression": name if level is None else f"{name}({level})"}
        return self._write(WriteTarget("PARQUET", path, options, _names(partition_by)), mode)

    def write_csv(
        self,
        path: str | PathLike[str],
        with_header: bool = False,
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as CSV, into a file or a directory as `write_parquet` does. Returns the row count."""
        if write_options is not None:
            return self._write_single_node(mode, "write_csv", path, with_header, write_options)
        options = {"format.has_header": str(with_header).lower()}
        return self._write(WriteTarget("CSV", path, options, _names(partition_by)), mode)

    def write_json(
        self,
        path: str | PathLike[str],
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as newline-delimited JSON, as `write_parquet` does. Returns the row count."""
        if write_options is not None:
            return self._write_single_node(mode, "write_json", path, write_options)
        return self._write(WriteTarget("JSON", path, {}, _names(partition_by)), mode)

    def write_table(
        self, table_name: str, write_options: DataFrameWriteOptions | None = None, *, mode: WriteMode = "append"
    ) -> int:
        """Write the rows to a table of the session. Columns are matched by name. Returns the row count.

        Args:
            write_options: DataFusion's own options. With them its writer adds to the table, on a single node.
            mode: "append" adds to the table. "overwrite" replaces its rows when all new rows are computed; the query
                may read the old ones. "error" raises if the table exists. "ignore" then writes nothing and returns 0.
                If there is no such table, "append" raises, and the other modes create one in memory.
        """
        if write_options is not None:
            return self._write_single_node(mode if mode != "append" else None, "write_table", table_name, write_options)
        return write_table(self._engine, self._query, table_name, check_mode(mode))

    def write_spark_table(
        self,
        table_name: str,
        *,
        mode: WriteMode = "error",
        format: str | None = None,
        partition_by: str | Sequence[str] = (),
    ) -> None:
        """Write the rows to a table of Spark's catalog, if the session runs on Spark. The query is computed once.

        Args:
            table_name: as Spark's SQL spells it: `table`, `database.table` or `catalog.database.table`.
            mode: as in Spark. "append" adds rows; columns are matched by name.
                "overwrite" replaces the table; the query must not read it. "error" raises if it exists. "ignore" then
                writes nothing, and the query does not run.
            format: the format of a new table: "parquet", "orc" and so on. None means Spark's default.
            partition_by: columns by which a new table is partitioned.
        """
        write = SparkWrite(table_name, check_mode(mode), format, _names(partition_by))
        write_spark_table(self._engine, self._query, write)

    def _write(self, target: WriteTarget, mode: WriteMode | None) -> int:
        chosen = check_mode(mode) if mode is not None else None
        copied = self._engine.copy(self._query, copy_tail(target), chosen)
        written = self._engine.start(copied).read_all()
        return int(written.column(0)[0].as_py())

    def _write_single_node(self, mode: WriteMode | None, method: str, *args: Any) -> int:
        """Use DataFusion's own writer, for options that COPY does not have. It does not return a row count."""
        refuse_mode(mode)
        rows = self.count()
        call_datafusion(getattr(self._query.inner, method), *args)
        return rows

    def _local(self, rows: pa.Table) -> datafusion.DataFrame:
        """DataFusion's own rendering, in a context of its own: it names the table and keeps it."""
        return datafusion.SessionContext().from_arrow(rows)


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def look_inside(dataframe: DataFrame) -> tuple[Engine, LazyQuery]:
    """What a DataFrame is made of, for other parts of sparkfusion."""
    return dataframe._engine, dataframe._query
