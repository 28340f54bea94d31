"""Session: tables, functions and settings of one user, and SQL over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.config.config_file import current_config_file
from sparkfusion.config.given_settings import CONNECT, GivenSetting, read_below_spark, read_spark
from sparkfusion.observe.events import Subscriber
from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.progress_calls import ProgressCalls
from sparkfusion.runner.base import Runner, SparkDataFrames
from sparkfusion.runner.targets import runner_for
from sparkfusion.session.catalog import TableMethods
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.session.sql_interpreter import SqlInterpreter, answer_rows
from sparkfusion.session.table_names import call_with_tables


class Session(TableMethods):
    """A user's session. Close it, or use it in a `with`, to stop its queries and remove what it keeps on disk.

    `sql` and the `register_*` and `from_*` methods have the names and arguments of datafusion-python's SessionContext.
    """

    def __init__(
        self, runner: Runner, settings: Mapping[str, object] | None = None, below: Iterable[GivenSetting] = ()
    ) -> None:
        """`sparkfusion.connect` opens sessions. `below` are values over which Spark's and then `settings` win."""
        super().__init__(Engine(runner, _in_order(below, runner, settings or {})))

    @property
    def config(self) -> SessionSettings:
        """The settings: a mapping from their full names, `datafusion.*` and `sparkfusion.*`, to their values.

        >>> session.config["sparkfusion.slots"] = 2
        >>> session.config["sparkfusion.slots"]
        '2'
        """
        return self._engine.settings

    @property
    def context(self) -> SessionContext:
        """DataFusion's own context below. Its queries run on a single node.

        >>> session.context.sql("select count(*) as n from orders").to_pydict()
        {'n': [3]}
        """
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

        `$name` in the text stands for a value of `param_values`, a scalar that is never parsed as SQL, or for one of
        `named_params`: a DataFrame in place of a table. In DataFusion's dialect, any other value of `named_params`
        becomes a part of the SQL text, so it must not come from a user.

        `dialect` is "datafusion" or "spark"; None means the setting `sparkfusion.dialect`. In Spark's dialect a query
        means what it means in Spark SQL, or is refused. Its parameters are written `:name`; their values are scalars.

        >>> session.sql("select id, city from orders where price > $least", {"least": 25.0}).to_pylist()
        [{'id': 3, 'city': 'Oslo'}]
        >>> session.sql("create table dear as select * from orders where price > 15")
        DataFrame()
        ...
        >>> session.sql("select 7 div 2 as half", dialect="spark").to_pylist()
        [{'half': 3}]
        """
        made = SqlInterpreter(self._engine, param_values, named_params, dialect).interpret(query)
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
        """Like `sql`, but a statement that writes is not run yet: an action of the DataFrame runs it.

        >>> statement = session.lazy_sql("copy orders to 'copy.csv'")
        >>> statement
        DataFrame[count: uint64]
        not run: it writes, ...
        >>> statement.to_pydict()
        {'count': [3]}
        """
        return DataFrame(
            self._engine, SqlInterpreter(self._engine, param_values, named_params, dialect).interpret(query)
        )

    def table(self, name: str) -> DataFrame:
        """The DataFrame of a table.

        >>> session.table("orders").count()
        3
        """
        context = self._engine.context
        found = self._engine.tables.read_names(
            f"select * from {name}", lambda: call_with_tables(context, context.table, name)
        )
        return DataFrame(self._engine, LazyQuery(found))

    def settings(self) -> pa.Table:
        """Every setting, by name: its value, what it means, and where the value comes from (`source`).

        >>> settings = session.settings()
        >>> settings.column_names
        ['name', 'value', 'description', 'source']
        """
        return self._engine.settings.as_table()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event of this session's queries. Call the returned function to end that.

        It is called from several threads, also at the same time.

        >>> events = []
        >>> unsubscribe = session.subscribe(events.append)
        >>> _ = orders.collect()
        >>> unsubscribe()
        >>> [type(event).__name__ for event in events]
        ['QueryPlanned', 'QueryFinished']
        """
        return self._engine.subscribe(subscriber)

    def on_progress(self, function: Callable[[ProgressState], None], *, every: float = 0.2) -> Callable[[], None]:
        """Call `function` with the progress of this session's queries. Call the returned function to end that.

        It is called when a query or a stage begins or ends, and in between at most once in `every` seconds. Calls come
        from several threads, one at a time; the function must return quickly.

        >>> seen = []
        >>> stop = session.on_progress(seen.append)
        >>> _ = orders.collect()
        >>> stop()
        >>> [state.status for state in seen]
        ['running', 'finished']
        """
        return self._engine.subscribe(ProgressCalls(function, every))

    def close(self) -> None:
        """Stop the session's queries and remove its files. May be called several times.

        >>> session.close()
        >>> orders.collect()
        Traceback (most recent call last):
        sparkfusion.errors.UserError: the session is closed...
        """
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

    Settings also come from `sparkfusion.toml`, from the environment and from Spark's configuration; those of `config`
    win. Without a target, tasks run where `sparkfusion.toml` says.

    >>> import sparkfusion
    >>> with sparkfusion.connect(config={"sparkfusion.slots": 2}) as session:
    ...     session.sql("select 1 as one").to_pylist()
    [{'one': 1}]
    """
    file = current_config_file()
    below = read_below_spark(file, os.environ)
    if target is None and file is not None:
        target = file.on
    return Session(runner_for(target), config, below)


def _in_order(below: Iterable[GivenSetting], runner: Runner, settings: Mapping[str, object]) -> Iterator[GivenSetting]:
    """Lazy: the engine closes the runner if a value is wrong."""
    yield from below
    if runner.spark is not None:
        yield from read_spark(runner.spark.configuration())
    yield from (GivenSetting(name, value, CONNECT) for name, value in settings.items())


def finds_tables_of_spark(session: Session) -> bool:
    """Whether queries of a session find the tables of Spark, for other parts of sparkfusion."""
    return engine_of(session).tables.of_catalog.is_used()


def engine_of(session: Session) -> Engine:
    """What a session works with, for other parts of sparkfusion."""
    return session._engine


def spark_of(session: Session) -> SparkDataFrames:
    """What only a session on Spark can do, for other parts of sparkfusion."""
    return engine_of(session).on_spark("cannot use Spark")
