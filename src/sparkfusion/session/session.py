"""Session: tables, functions and settings of one user, and SQL over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datafusion import SessionContext

from sparkfusion.observe.events import Subscriber
from sparkfusion.runner.base import Runner
from sparkfusion.runner.targets import runner_for
from sparkfusion.session.catalog import TableMethods
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.session.sql_reader import SqlReader, answer_rows
from sparkfusion.session.table_names import call_with_tables


class Session(TableMethods):
    """A user's session. Close it, or use it in a `with`, to stop its queries and remove what it keeps on disk.

    `sql` and the `register_*` and `from_*` methods have the names and arguments of datafusion-python's SessionContext.
    """

    def __init__(self, runner: Runner, settings: Mapping[str, object] | None = None) -> None:
        """`sparkfusion.connect` opens sessions."""
        super().__init__(Engine(runner, settings or {}))

    @property
    def config(self) -> SessionSettings:
        """The settings: a mapping from their full names, `datafusion.*` and `sparkfusion.*`, to their values."""
        return self._engine.settings

    @property
    def context(self) -> SessionContext:
        """DataFusion's own context below. Its queries run on a single node."""
        self._engine.settings.expect_changes_elsewhere()
        return self._engine.context

    def sql(
        self,
        query: str,
        param_values: Mapping[str, Any] | None = None,
        *,
        dialect: str | None = None,
        **named_params: Any,
    ) -> DataFrame:
        """Run a statement, or return the lazy DataFrame of a query.

        A query runs when an action of its DataFrame is called. Every other statement runs at once, and only once: DDL,
        SET, and everything that writes, such as INSERT, UPDATE, DELETE and COPY. The DataFrame then holds the result;
        for a write, the number of rows. EXPLAIN does not run the statement, EXPLAIN ANALYZE does.

        `$name` in the text is replaced by a value of `param_values`, as a scalar, or by one of `named_params`, which
        may also be a DataFrame.

        `dialect` is "datafusion" or "spark"; None means the setting `sparkfusion.dialect`. In Spark's dialect a query
        means what it means in Spark SQL, or is refused. Its parameters are written `:name`; their values are scalars.
        """
        made = SqlReader(self._engine, param_values, named_params, dialect).read(query)
        if made.writes:
            made = answer_rows(self._engine.start(made).read_all())
        return DataFrame(self._engine, made)

    def lazy_sql(
        self,
        query: str,
        param_values: Mapping[str, Any] | None = None,
        *,
        dialect: str | None = None,
        **named_params: Any,
    ) -> DataFrame:
        """Like `sql`, but a statement that writes is not run yet: an action of the DataFrame runs it."""
        return DataFrame(self._engine, SqlReader(self._engine, param_values, named_params, dialect).read(query))

    def table(self, name: str) -> DataFrame:
        """The DataFrame of a table."""
        context = self._engine.context
        found = self._engine.tables.read_names(
            f"select * from {name}", lambda: call_with_tables(context, context.table, name)
        )
        return DataFrame(self._engine, LazyQuery(found))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event of this session's queries. Call the returned function to end that."""
        return self._engine.subscribe(subscriber)

    def close(self) -> None:
        """Stop the session's queries and remove its files. May be called several times."""
        self._engine.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(target: object = None, *, config: Mapping[str, object] | None = None) -> Session:
    """Open a session.

    Args:
        target: where tasks run. None or "local": in this process. A SparkSession, also of Spark Connect: on that Spark.
            "spark": on the active Spark session, or on a local one that is started now and stopped with this session.
            Addresses such as "flight://host:port,host:port?token=…", or a `Cluster`: on these workers.
        config: settings by their full names, `datafusion.*` and `sparkfusion.*`.
    """
    return Session(runner_for(target), config)
