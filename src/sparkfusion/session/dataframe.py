"""DataFrame: a lazy query. Verbs build it up in DataFusion; actions plan it, distribute it and run it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa
from datafusion.catalog import Table
from datafusion.plan import LogicalPlan

from sparkfusion.extras import import_extra
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.plan.stage import Distribution
from sparkfusion.session.chains import check_chains
from sparkfusion.session.dataframe_verbs import DataFrameVerbs
from sparkfusion.session.dataframe_writes import DataFrameWrites
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.explaining import check_format, explain_query, gather_facts
from sparkfusion.session.explanation import Explanation
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.query import RunningQuery
from sparkfusion.session.shown_rows import read_shown_rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyspark.sql


class DataFrame(DataFrameVerbs, DataFrameWrites):
    """A query over a session's tables, with the method names of datafusion-python. Nothing runs until an action.

    `print` and notebooks show the first rows, and so run the query, as datafusion-python does: see `__repr__`.
    """

    # ---- verbs that are more than a call of DataFusion

    def transform(self, func: Any, *args: Any) -> DataFrame:
        """Apply a function DataFrame → DataFrame, so that verbs can be chained.

        >>> orders.transform(lambda df, city: df.filter(col("city") == city), "Lima").count()
        1
        """
        result = func(self, *args)
        if not isinstance(result, DataFrame):
            raise TypeError(f"the function must return a DataFrame, not {type(result).__name__}")
        return result

    def tail(self, n: int = 5) -> DataFrame:
        """The last rows. The query runs now, to count them.

        >>> orders.sort("id").tail(2).to_pydict()["id"]
        [2, 3]
        """
        return self.limit(n, offset=max(0, self.count() - n))

    def cache(self) -> DataFrame:
        """Run the query now and keep its rows in memory.

        >>> dear = orders.filter("price > 15").cache()
        >>> dear.count(), dear.to_pydict()["id"]
        (2, [2, 3])
        """
        return self._with(self._engine.tables.keep_rows(self.collect()))

    def __getitem__(self, key: str | list[str] | tuple[str, ...]) -> DataFrame:
        return self.select(key) if isinstance(key, str) else self.select(*key)

    # ---- what it is

    def schema(self) -> pa.Schema:
        """The columns and their types. Nothing runs.

        >>> orders.schema().names
        ['id', 'city', 'price']
        """
        return self._query.inner.schema()

    @property
    def columns(self) -> list[str]:
        """The names of the columns, as in PySpark.

        >>> orders.columns
        ['id', 'city', 'price']
        """
        return list(self.schema().names)

    def col(self, name: str) -> datafusion.Expr:
        """A column of this DataFrame, for expressions in which another one has a column of that name.

        >>> dear = orders.filter("price > 15").alias("dear")
        >>> orders.join_on(dear, orders.col("id") == dear.col("id")).select(dear.col("id")).sort("id").to_pydict()
        {'id': [2, 3]}
        """
        return call_datafusion(self._query.inner.col, name)  # type: ignore[no-any-return]

    column = col

    def find_qualified_columns(self, *names: str) -> list[datafusion.Expr]:
        """`col` for several names.

        >>> orders.select(*orders.find_qualified_columns("id", "price")).columns
        ['id', 'price']
        """
        return call_datafusion(self._query.inner.find_qualified_columns, *names)  # type: ignore[no-any-return]

    def parse_sql_expr(self, expr: str) -> datafusion.Expr:
        """The expression that SQL means for these columns.

        >>> orders.filter(orders.parse_sql_expr("price > 15")).count()
        2
        """
        check_chains(expr)
        return call_datafusion(self._query.inner.parse_sql_expr, expr)  # type: ignore[no-any-return]

    def to_datafusion(self) -> datafusion.DataFrame:
        """DataFusion's DataFrame underneath; its own actions run on a single node.

        >>> type(orders.to_datafusion()).__module__
        'datafusion.dataframe'
        """
        return self._query.inner

    def into_view(self, temporary: bool = False) -> Table:
        """The query as a table of DataFusion, for `Session.register_table`. `temporary` changes nothing, as there.

        >>> session.register_table("dear", orders.filter("price > 15").into_view())
        >>> session.table("dear").count()
        2
        """
        return self._query.inner.into_view(temporary)

    def logical_plan(self) -> LogicalPlan:
        """DataFusion's logical plan, as it was written.

        >>> print(orders.limit(1).logical_plan().display_indent())
        Limit: skip=0, fetch=1
          TableScan: orders
        """
        return self._query.inner.logical_plan()

    def optimized_logical_plan(self) -> LogicalPlan:
        """DataFusion's logical plan after its optimizer. `explain` shows what runs.

        >>> print(orders.select("id").optimized_logical_plan().display_indent())
        TableScan: orders projection=[id]
        """
        return call_datafusion(self._query.inner.optimized_logical_plan)  # type: ignore[no-any-return]

    def distribution(self) -> Distribution:
        """How the query would run: its stage graph, or the reason why it runs on a single node.

        >>> orders.distribution().distributed
        False
        """
        return self._engine.plan(self._query).distribution

    # ---- actions

    def stream(self) -> RunningQuery:
        """Start the query and return its record batches as they are ready. Close the stream to stop the query.

        >>> with orders.stream() as batches:
        ...     sum(batch.num_rows for batch in batches)
        3
        """
        return self._engine.start(self._query)

    def execute_stream(self) -> RunningQuery:
        """`stream`, under DataFusion's name. The batches are pyarrow's.

        >>> [batch.num_rows for batch in orders.execute_stream()]
        [3]
        """
        return self.stream()

    def collect(self) -> pa.Table:
        """Run the query and return all rows. `to_arrow` and `to_arrow_table` are the same.

        >>> orders.sort("id").collect()["price"].to_pylist()
        [10.0, 20.0, 30.0]
        """
        return self.stream().read_all()

    to_arrow = collect
    to_arrow_table = collect

    def collect_column(self, column_name: str) -> pa.Array | pa.ChunkedArray:
        """Run the query for one of its columns, and return its values.

        >>> orders.sort("id").collect_column("price").to_pylist()
        [10.0, 20.0, 30.0]
        """
        return self.select(self.col(column_name)).collect().column(0).combine_chunks()

    def to_pandas(self) -> pd.DataFrame:
        """Run the query; the rows as a pandas DataFrame (extra `pandas`).

        >>> int(orders.to_pandas()["price"].sum())
        60
        """
        import_extra("pandas", "pandas", "to_pandas")
        return self.collect().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Run the query; the rows as a Polars DataFrame (extra `polars`).

        >>> orders.to_polars().shape
        (3, 3)
        """
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
        """Run the query; a dictionary for each row.

        >>> orders.filter("id = 1").to_pylist()
        [{'id': 1, 'city': 'Oslo', 'price': 10.0}]
        """
        rows: list[dict[str, Any]] = self.collect().to_pylist()
        return rows

    def to_pydict(self) -> dict[str, list[Any]]:
        """Run the query; a list for each column.

        >>> orders.sort("id").select("id", "city").to_pydict()
        {'id': [1, 2, 3], 'city': ['Oslo', 'Lima', 'Oslo']}
        """
        columns: dict[str, list[Any]] = self.collect().to_pydict()
        return columns

    def show(self, num: int = 20) -> None:
        """Run the query for its first rows, and print them as a table.

        >>> orders.sort("id").show(1)
        DataFrame()
        +----+------+-------+
        | id | city | price |
        +----+------+-------+
        | 1  | Oslo | 10.0  |
        +----+------+-------+
        """
        # DataFusion's own rendering, in a context of its own: it names the table and keeps it
        datafusion.SessionContext().from_arrow(self.limit(num).collect()).show(num)

    def __repr__(self) -> str:
        """The first rows as a table, in DataFusion's form: `print(df)` shows it.

        It runs the query with a limit of eleven rows (one more than it shows, and more if DataFusion's formatter is
        configured so), for at most `sparkfusion.repr_seconds`. After that, if the query fails, or if the statement
        writes, it runs no further and shows the columns and the reason. It does not raise errors of the query.

        >>> orders.sort("id")
        DataFrame()
        +----+------+-------+
        | id | city | price |
        +----+------+-------+
        | 1  | Oslo | 10.0  |
        | 2  | Lima | 20.0  |
        | 3  | Oslo | 30.0  |
        +----+------+-------+
        """
        seconds = self._engine.settings.ours.integer("repr_seconds")
        return read_shown_rows(self._engine, self._query, seconds).as_text()

    def _repr_html_(self) -> str:
        return read_shown_rows(self._engine, self._query).as_html()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows, in each form that it may show. The query runs once for all forms."""
        shown = read_shown_rows(self._engine, self._query)
        return {"text/plain": shown.as_text(), "text/html": shown.as_html()}

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream, for any library that reads one. The query runs while it is read."""
        running = self.stream()
        first = list(itertools.islice(running, 1))  # the schema is known with the first batch
        reader = pa.RecordBatchReader.from_batches(running.schema, itertools.chain(first, running))
        return reader.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """The rows in the older exchange protocol of dataframe libraries. The query runs now."""
        return self.collect().__dataframe__(nan_as_null, allow_copy)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self.stream() as running:
            yield from running

    def explain(self, *, analyze: bool = False, format: ExplainFormat = "text") -> Explanation:
        """Print the stage tree and return it; with `analyze`, run the query and show what each stage and operator did.

        `format="html"` prints nothing: a notebook draws the page that is returned, and `save` writes it to a file.

        >>> _ = orders.explain()
        not distributed: ...
        """
        check_format(format)
        return Explanation(gather_facts(self._engine, self._query, analyze=analyze), format)

    def explain_text(self, *, analyze: bool = False, format: ExplainFormat = "text") -> str:
        """What `explain` prints.

        >>> print(orders.explain_text())
        not distributed: ...
        """
        return explain_query(self._engine, self._query, analyze=analyze, format=format)

    # ---- names of PySpark, for what does the same here; docs/datafusion-methods.md lists them

    where = DataFrameVerbs.filter
    orderBy = DataFrameVerbs.sort
    withColumn = DataFrameVerbs.with_column
    withColumnRenamed = DataFrameVerbs.with_column_renamed
    toArrow = collect
    toPandas = to_pandas

    def createOrReplaceTempView(self, name: str) -> None:
        """Register the query as a view of the session. A table or view of that name is replaced.

        >>> orders.where("price > 15").createOrReplaceTempView("orders")
        >>> session.table("orders").count()
        2
        """
        self._engine.tables.replace_view(name, self.to_datafusion())


def look_inside(dataframe: DataFrame) -> tuple[Engine, LazyQuery]:
    """What a DataFrame is made of, for other parts of sparkfusion."""
    return dataframe._engine, dataframe._query
