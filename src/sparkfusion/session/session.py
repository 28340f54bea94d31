"""Session: tables, functions and settings of one user, and the way queries get from SQL to a runner."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext, SQLOptions

from sparkfusion import config
from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.ids import QueryId, new_query_id
from sparkfusion.observe.events import Event, QueryPlanned, Subscriber
from sparkfusion.plan.gate import LOST
from sparkfusion.plan.settle import settle_head
from sparkfusion.plan.stage import Head, StageGraph
from sparkfusion.runner.base import QueryJob, Runner, RunningJob
from sparkfusion.runner.targets import runner_for
from sparkfusion.session.bad_input import locate_bad_line
from sparkfusion.session.catalog import CatalogMethods
from sparkfusion.session.chains import check_chains
from sparkfusion.session.changes import cannot_run_at_once, changes_nothing, count_of_none, refusals_explained
from sparkfusion.session.config import DEFAULT_CATALOG, DEFAULT_SCHEMA, SessionSettings
from sparkfusion.session.copy_partitions import check_column_left, name_nulls
from sparkfusion.session.directory_tables import DirectoryTables
from sparkfusion.session.empty_writes import FilledJob
from sparkfusion.session.explain_statement import datafusion_rows, explain_rows, is_copy, is_planned
from sparkfusion.session.external_tables import run_statement
from sparkfusion.session.frame import Copy, DataFrame
from sparkfusion.session.layout import has_files
from sparkfusion.session.notices import Notices, require_distributed
from sparkfusion.session.object_stores import ObjectStores
from sparkfusion.session.planner import Planned, Planner
from sparkfusion.session.put_rows import PutJob, put_rows
from sparkfusion.session.query import RunningQuery, settle_schema
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.settings_table import all_settings_listed
from sparkfusion.session.single_node import SingleNodeJob, limit
from sparkfusion.session.start import prepare_datafusion
from sparkfusion.session.statements import (
    CopyQuery,
    ResetOption,
    SetOption,
    ShowOption,
    is_explain,
    parse_copy,
    parse_statement,
    without_leading_comments,
)
from sparkfusion.session.table_names import PARAMETER_VIEW, call_with_tables
from sparkfusion.session.table_writes import frame_of
from sparkfusion.session.upstream import GUARDED_DEFAULTS
from sparkfusion.session.verbs import call_datafusion, unwrap
from sparkfusion.session.write import CopyTarget, RowCopier, WriteJob
from sparkfusion.session.write_modes import PlacedJob, WriteMode, place, split_mode
from sparkfusion.worker.copy import CopyOrder
from sparkfusion.worker.session import list_files_anew

_DEFAULTS = {"datafusion.catalog.information_schema": "true", **GUARDED_DEFAULTS}
_EMPTY_PLACEHOLDER = "Ipc error: Expected schema message, found empty stream"
_QUERIES = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
_log = logging.getLogger("sparkfusion")


class Session(CatalogMethods):
    """A user's session. Close it, or use it in a `with`, to stop its queries and remove what it keeps on disk.

    `sql` and the `register_*` and `from_*` methods have the names and arguments of datafusion-python's SessionContext.
    """

    def __init__(self, runner: Runner, settings: Mapping[str, object] | None = None) -> None:
        prepare_datafusion()
        self.context = SessionContext(datafusion.SessionConfig(_DEFAULTS))
        self._schema = SessionSchema(self.context)
        self.config = SessionSettings(self.context, config.Settings())
        self.directory_tables = DirectoryTables(self._schema, self.config)
        list_files_anew(self.context)
        self._runner = runner
        self._subscribers: list[Subscriber] = []
        self._object_stores = ObjectStores()
        self._notices = Notices(self._emit)
        try:
            self._configure(settings or {})
        except BaseException:
            runner.close()
            raise
        see_files = partial(runner.shares_files, self.config.ours)
        self._planner = Planner(self.config, self.prepare, self._schema, self.directory_tables, see_files)
        self._closed = False

    def _configure(self, settings: Mapping[str, object]) -> None:
        if self._runner.slots is not None:
            self.config["datafusion.execution.target_partitions"] = self._runner.slots
        for name, value in settings.items():
            self.config[name] = value

    # ---- queries

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, **named_params: Any) -> DataFrame:
        """Run a statement, or return the lazy DataFrame of a query.

        A query runs when an action of its DataFrame is called. Every other statement runs at once, and only once: DDL,
        SET, and everything that writes, such as INSERT, UPDATE, DELETE and COPY. The DataFrame then holds the result;
        for a write, the number of rows. EXPLAIN does not run the statement, EXPLAIN ANALYZE does.

        `$name` in the text is replaced by a value of `param_values`, as a scalar, or by one of `named_params`, which
        may also be a DataFrame.
        """
        frame = self.make_frame(query, param_values, **named_params)
        if not frame.writes:
            return frame
        with refusals_explained(frame.changes):
            return self._answer_rows(frame.collect())

    def make_frame(self, query: str, param_values: Mapping[str, Any] | None = None, **named_params: Any) -> DataFrame:
        """Like `sql`, but a statement that writes is not run yet: an action of the DataFrame runs it."""
        query = without_leading_comments(query)
        statement = parse_statement(query)
        if statement is not None:
            return self._answer(statement)
        if is_explain(query):
            return self._explain(query, param_values, named_params)
        copied = parse_copy(query)
        if copied is not None:
            return self._copy_frame(copied, param_values, named_params)
        with self.noting_tables(query):
            inner = self._datafusion_frame(query, param_values, named_params)
        return frame_of(self, inner)

    def _copy_frame(
        self, copied: CopyQuery, param_values: Mapping[str, Any] | None, named_params: Mapping[str, Any]
    ) -> DataFrame:
        text = copied.source if copied.is_query else f"select * from {copied.source}"
        source = self._datafusion_frame(text, param_values, named_params, allowed=_QUERIES)
        return self.copy(DataFrame(self, source), *split_mode(copied.tail))

    def _datafusion_frame(
        self,
        query: str,
        param_values: Mapping[str, Any] | None,
        named_params: Mapping[str, Any],
        allowed: SQLOptions | None = None,
    ) -> datafusion.DataFrame:
        check_chains(query)
        unwrapped = {name: unwrap(value) for name, value in named_params.items()}
        values = dict(param_values) if param_values is not None else None
        before = self._table_names() if named_params else set()
        try:
            call, kept = self.context.sql, {"options": allowed, "param_values": values, **unwrapped}
            run = partial(call_with_tables, self.context, call, **kept)
            with all_settings_listed(self.context, self.config, query) as text:
                made: datafusion.DataFrame = self.read_names(
                    query, lambda: run_statement(self.context, text, run, self.prepare, self._planner.feeds)
                )
            return made
        except SparkfusionError as error:
            if _EMPTY_PLACEHOLDER in error.message:
                raise cannot_run_at_once() from error
            raise
        finally:
            for view in self._table_names() - before if named_params else ():
                if PARAMETER_VIEW.fullmatch(view):  # DataFusion makes one for each frame among the values
                    self.context.deregister_table(view)

    def _table_names(self) -> set[str]:
        """The tables of the default schema, where DataFusion puts frames that are values."""
        try:
            return set(self.context.catalog(self.config[DEFAULT_CATALOG]).schema(self.config[DEFAULT_SCHEMA]).names())
        except KeyError:  # a default that does not exist: DataFusion says so
            return set()

    def table(self, name: str) -> DataFrame:
        return DataFrame(self, self.read_names(name, lambda: call_with_tables(self.context, self.context.table, name)))

    def copy(self, source: DataFrame, tail: str, mode: WriteMode | None = None) -> DataFrame:
        """A frame that writes the rows of `source`, as the rest of a COPY statement says, and counts them."""
        view = f"sparkfusion_copy_{new_query_id()}"
        kept = self.config["datafusion.execution.keep_partition_by_columns"] == "true"
        check_column_left(source.schema().names, tail, kept=kept)
        source = DataFrame(self, name_nulls(source.to_datafusion(), tail))
        self.context.register_view(view, source.to_datafusion())
        try:
            inner = call_datafusion(self.context.sql, f"COPY {view} {tail}")
        finally:
            self.context.deregister_table(view)
        return DataFrame(self, inner, Copy(source, tail, mode))

    def plan(self, frame: DataFrame, *, with_rows: bool = False) -> Planned:
        """Plan a query without running it; `with_rows`, so that it can be run when the session is gone."""
        if self._closed:
            raise UserError("the session is closed", hint="sparkfusion.connect() opens a new one")
        if frame.changes is not None and frame.changes.into is None:
            return self._planner.keep_here(frame.changes.reads, frame.changes.reason)
        return self._planner.plan(frame.source().to_datafusion(), with_rows=with_rows)

    def only_distributed(self, frame: DataFrame) -> str | None:
        return self._planner.only_distributed(frame.to_datafusion())

    def start(self, frame: DataFrame, planned: Planned | None = None, writes: CopyOrder | None = None) -> RunningQuery:
        """Plan a query and start it. Used by the actions of DataFrame.

        Args:
            writes: for the query below a COPY: its tasks write their rows, instead of giving them to the reader.
        """
        query = new_query_id()
        if planned is None:
            planned = self.plan(frame)
        graph = planned.distribution.graph
        if frame.copies is not None:
            return self._start_copy(query, frame, frame.copies, planned)
        if frame.changes is not None and frame.changes.into is not None:
            put = PutJob(lambda: self.start(frame.source(), planned), partial(put_rows, self.context, frame.changes))
            return RunningQuery(query, frame.schema(), put, Head(()), self._emit)
        if graph is not None and writes is not None:
            graph = settle_head(graph)
        if graph is None:
            reads = frame.changes.reads if frame.changes is not None else (frame.to_datafusion(),)
            single = self._single_node_job(query, self._single_node_frame(frame), planned, reads)
            return RunningQuery(query, frame.schema(), single, Head(()), self._emit)
        self._emit(QueryPlanned(query, len(graph.stages), graph.task_count, None, planned.seconds))
        job = self._job(query, graph, planned, writes)
        return RunningQuery(query, frame.schema(), self._runner.start(job), graph.head, self._emit)

    def _single_node_job(
        self, query: QueryId, frame: datafusion.DataFrame, planned: Planned, reads: tuple[datafusion.DataFrame, ...]
    ) -> SingleNodeJob:
        if self.config.ours.flag("require_distributed"):
            require_distributed(planned.distribution)
        self._emit(QueryPlanned(query, 0, 0, planned.distribution.reason, planned.seconds))
        self._notices.note(query, planned.distribution)
        limited, spills = limit(frame, self.config.ours, planned.session_options, self.prepare)
        explain = partial(
            locate_bad_line,
            frames=reads,
            options=planned.session_options,
            prepare=self.prepare,
            exact=LOST not in (planned.distribution.reason or ""),
        )
        made: SingleNodeJob = call_datafusion(SingleNodeJob, limited, explain, spills)
        return made

    def _single_node_frame(self, frame: DataFrame) -> datafusion.DataFrame:
        if frame.changes is None or not changes_nothing(frame.changes, frame.to_datafusion()):
            return frame.to_datafusion()
        return count_of_none()

    def _job(self, query: QueryId, graph: StageGraph, planned: Planned, writes: CopyOrder | None = None) -> QueryJob:
        return QueryJob(
            query=query,
            graph=graph,
            settings=self.config.ours.copy(),
            options=planned.options,
            emit=self._emit,
            prepare=self.prepare,
            recipe=lambda: self._object_stores.recipe(stage.plan for stage in graph.stages),
            writes=writes,
            feeds=planned.feeds,
            keeps=planned.keeps,
        )

    def place(self) -> str:
        """Where tasks run and where their frames are, for `explain`."""
        return self._runner.describe(self.config.ours)

    def to_spark(self, frame: DataFrame) -> Any:
        """Used by `DataFrame.to_spark`, which says what it does."""
        planned = self.plan(frame, with_rows=True)
        graph = planned.distribution.graph
        if graph is None or frame.copies is not None or planned.feeds or not graph.repeatable:
            return self._runner.from_rows(self.start(frame, planned).read_all())
        graph = settle_head(graph)
        schema = settle_schema(frame.schema(), self._planner.output_schema(graph))
        return self._runner.to_spark(self._job(new_query_id(), graph, planned), schema)

    def _start_copy(self, query: QueryId, frame: DataFrame, copies: Copy, planned: Planned) -> RunningQuery:
        target = CopyTarget.parse(copies.tail)
        placement = place(
            target.path,
            copies.mode,
            query,
            directory=target.is_directory,
            in_place=self._tasks_may_write(target, planned),
            has_files=partial(has_files, self.prepare),
        )
        if placement is None:
            return RunningQuery(query, frame.schema(), SingleNodeJob(count_of_none()), Head(()), self._emit)
        try:
            job = self._write_job(query, copies, planned, target, target.at(placement.path))
        except BaseException:
            placement.abandon()
            raise
        return RunningQuery(query, frame.schema(), PlacedJob(job, placement, target.path), Head(()), self._emit)

    def _write_job(
        self, query: QueryId, copies: Copy, planned: Planned, target: CopyTarget, placed: CopyTarget
    ) -> RunningJob:
        options, store_dir = self.config.datafusion_options(), self.config.ours.directory()
        copier = RowCopier(query, placed, options, store_dir, self.prepare)
        if planned.distribution.graph is None:
            single = self.copy(copies.source, placed.tail).to_datafusion()
            job = self._single_node_job(query, single, planned, (copies.source.to_datafusion(),))
            return FilledJob(job, partial(copier.copy, (), copies.source.schema())) if target.is_directory else job
        by_tasks = self._tasks_may_write(target, planned)
        return WriteJob(copier, lambda writes: self.start(copies.source, planned, writes), by_tasks=by_tasks)

    def _tasks_may_write(self, target: CopyTarget, planned: Planned) -> bool:
        graph = planned.distribution.graph
        whole = graph is not None and graph.head.fetch is None and not graph.head.skip
        return whole and target.is_local_directory and self._runner.reaches(Path(target.path).absolute().parent)

    def _answer(self, statement: SetOption | ResetOption | ShowOption) -> DataFrame:
        if isinstance(statement, SetOption):
            self.config[statement.name] = statement.value
            return DataFrame(self, self.context.empty_table().limit(0))
        if isinstance(statement, ResetOption):
            del self.config[statement.name]
            return DataFrame(self, self.context.empty_table().limit(0))
        shown = self.config.as_table()
        if statement.name is not None:
            shown = shown.filter(pc.equal(shown["name"], statement.name))
            if not shown.num_rows:
                self.config[statement.name]  # says what is wrong with the name
        return self._answer_rows(shown if statement.verbose else shown.select(["name", "value"]))

    def _answer_rows(self, rows: pa.Table) -> DataFrame:
        """Rows of ours as a frame, without a table in the user's catalog."""
        return DataFrame(self, SessionContext().from_arrow(rows))

    def _explain(
        self, query: str, param_values: Mapping[str, Any] | None, named_params: Mapping[str, Any]
    ) -> DataFrame:
        explained = DataFrame(self, self._datafusion_frame(query, param_values, named_params))
        (target,) = explained.logical_plan().inputs()
        if not is_planned(target):
            return self._answer_rows(datafusion_rows(explained))
        inner = self.context.create_dataframe_from_logical_plan(target)
        frame = frame_of(self, inner)
        copied = parse_copy(query) if is_copy(target) else None
        if copied is not None:
            frame = self._copy_frame(copied, param_values, named_params)
        with refusals_explained(frame.changes):
            return self._answer_rows(explain_rows(explained, frame))

    # ---- events and life

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event of this session's queries. Call the returned function to end that."""
        self._subscribers.append(subscriber)

        def end() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return end

    def _emit(self, event: Event) -> None:
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception:
                _log.exception("a subscriber failed on %s", type(event).__name__)

    def close(self) -> None:
        """Stop the session's queries and remove its files. May be called several times."""
        self._closed = True
        self._runner.close()
        self._planner.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self, context: SessionContext) -> None:
        """Give a context what cannot travel as data."""
        self._object_stores.prepare(context)


def connect(target: object = None, *, config: Mapping[str, object] | None = None) -> Session:
    """Open a session.

    Args:
        target: where tasks run. None or "local": in this process. A SparkSession: on that Spark. "spark": on the active
            Spark session, or on a local one that is started now and stopped with this session. Addresses such as
            "flight://host:port,host:port?token=…", or a `Cluster`: on these workers.
        config: settings by their full names, `datafusion.*` and `sparkfusion.*`.
    """
    return Session(runner_for(target), config)
