"""The engine of a session: it plans queries, starts them, and reports what happens to them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import datafusion
from datafusion import SessionContext

from sparkfusion import config
from sparkfusion.config.given_settings import DEFAULT, GivenSetting
from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import ResourceError, SparkfusionError, UserError
from sparkfusion.ids import QueryId, new_query_id
from sparkfusion.log_fields import about
from sparkfusion.observe.event_log import EventLog
from sparkfusion.observe.event_logging import log_event
from sparkfusion.observe.events import Event, QueryPlanned, QueryRestarted, Subscriber
from sparkfusion.plan.gate import LOST
from sparkfusion.plan.stage import Head, StageGraph, with_head_as_stage
from sparkfusion.runner.base import QueryJob, Runner, RunningJob, SparkDataFrames
from sparkfusion.session.bad_input import locate_bad_line
from sparkfusion.session.changes import changes_nothing, count_of_none, explain_refusal
from sparkfusion.session.copy_partitions import check_column_left, name_nulls
from sparkfusion.session.damaged_files import name_damaged_file
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.layout import has_files
from sparkfusion.session.lazy_query import Copy, LazyQuery
from sparkfusion.session.notices import Notices, require_distributed
from sparkfusion.session.planner import Planned, Planner
from sparkfusion.session.put_rows import PutJob, put_rows
from sparkfusion.session.query import RunningQuery, decide_schema
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.session.session_tables import SessionTables
from sparkfusion.session.single_node import SingleNodeJob, limit
from sparkfusion.session.spark_dialect import SparkDialect
from sparkfusion.session.start import prepare_datafusion
from sparkfusion.session.task_width import Machines
from sparkfusion.session.upstream import GUARDED_DEFAULTS
from sparkfusion.session.whole_job import WholeJob
from sparkfusion.session.write import CopyTarget, RowCopier, WriteJob
from sparkfusion.session.write_modes import CommittingJob, WriteMode, prepare_write
from sparkfusion.worker.copy import CopySpec
from sparkfusion.worker.task_context import turn_off_listing_cache

_DEFAULTS = {"datafusion.catalog.information_schema": "true", **GUARDED_DEFAULTS}
_LACKED_MEMORY = "wider tasks lacked memory, and cannot spill"
_log = logging.getLogger("sparkfusion")


class Engine:
    """Plans and runs the queries of one session.

    Attributes:
        context: of DataFusion, with the session's tables and functions.
        settings: `session.config`.
        tables: what is known about the session's tables.
        spark_dialect: reads queries in Spark's dialect.
    """

    def __init__(self, runner: Runner, settings: Iterable[GivenSetting]) -> None:
        prepare_datafusion()
        self.context = SessionContext(datafusion.SessionConfig(_DEFAULTS))
        self.settings = SessionSettings(self.context, config.Settings())
        self.tables = SessionTables(self.context, self.settings, runner.spark)
        self.spark_dialect = SparkDialect(self.context, self.settings, self.tables)
        turn_off_listing_cache(self.context)
        self._runner = runner
        self._event_log = EventLog(lambda: self.settings.ours.text("event_log"), self.describe_runner)
        self._subscribers: list[Subscriber] = [self._event_log, log_event]
        self._notices = Notices(self._emit)
        try:
            self._configure(settings)
        except BaseException:
            runner.close()
            raise
        see_files = partial(runner.shares_files, self.settings.ours)
        self._planner = Planner(self.settings, self.tables, see_files, lambda: Machines.of(runner, self.settings.ours))
        self._closed = False

    def _configure(self, settings: Iterable[GivenSetting]) -> None:
        if self._runner.slots is not None:
            self.settings.begin_with(GivenSetting(TARGET_PARTITIONS, self._runner.slots, DEFAULT))
        for given in settings:
            self.settings.begin_with(given)

    def close(self) -> None:
        self._closed = True
        self._runner.close()
        self._event_log.close()
        self._planner.close()
        self.tables.close()

    # ---- queries

    def plan(self, query: LazyQuery, *, with_rows: bool = False, split: bool = False) -> Planned:
        """Plan a query without running it.

        Args:
            with_rows: so that it can be run after the session is closed.
            split: into tasks, even where one task could run the whole plan. Rows that are written are always split.
        """
        if self._closed:
            raise UserError("the session is closed", hint="sparkfusion.connect() opens a new one")
        reads = query.changes.reads if query.changes is not None else (query.source.inner,)
        with self.name_damaged_file(*reads):
            if query.changes is not None and query.changes.into is None:
                return self._planner.keep_here(query.changes.reads, query.changes.reason)
            split = split or query.copies is not None
            return self._planner.plan(query.source.inner, with_rows=with_rows, split=split)

    def name_damaged_file(self, *reads: datafusion.DataFrame) -> AbstractContextManager[None]:
        """Around calls that make DataFusion plan these queries: if a file of theirs is damaged, the error names it."""
        return name_damaged_file(lambda: reads, self.settings.datafusion_options, self.tables.prepare)

    def start(self, query: LazyQuery, planned: Planned | None = None, writes: CopySpec | None = None) -> RunningQuery:
        """Plan a query and start it. `writes`: its tasks write their rows, instead of giving them to the consumer."""
        id = new_query_id()
        if planned is None:
            planned = self.plan(query)
        if query.copies is not None:
            source = replace(query.copies.source, text=query.text)
            job, head = self._copy_job(id, replace(query.copies, source=source), planned), Head(())
        elif query.changes is not None and query.changes.into is not None:
            put = partial(put_rows, self.context, query.changes)
            source = replace(query.source, text=query.text)
            job, head = PutJob(lambda: self.start(source, planned), put), Head(())
        elif planned.distribution.graph is None:
            nothing = query.changes is not None and changes_nothing(query.changes, query.inner)
            dataframe = count_of_none() if nothing else query.inner
            job, head = self._single_node_job(id, dataframe, planned, query), Head(())
        else:
            graph = planned.distribution.graph if writes is None else with_head_as_stage(planned.distribution.graph)
            self._emit(QueryPlanned(id, len(graph.stages), graph.task_count, None, planned.seconds, query.text, graph))
            job, head = self._runner.start(self._job(id, graph, planned, query.text, writes)), graph.head
            if graph.wide:
                job = WholeJob(job, partial(self._start_split, id, query))
        return RunningQuery(id, query.schema, job, head, self._emit)

    def _start_split(self, id: QueryId, query: LazyQuery, error: ResourceError) -> tuple[RunningJob, Head]:
        """Run a query again for which a wide task lacked memory, in tasks that can spill."""
        planned = self.plan(query, split=True)
        if planned.distribution.graph is None:
            error.hint = f"the query cannot be split, so that it could spill to disk: {planned.distribution.reason}"
            raise error
        graph = replace(planned.distribution.graph, notes=(f"tasks of one partition: {_LACKED_MEMORY}",))
        words = "query %s runs again in tasks of one partition: %s (%s)"
        _log.warning(words, id, _LACKED_MEMORY, error.message, extra=about(id))
        self._emit(QueryRestarted(id, len(graph.stages), graph.task_count, _LACKED_MEMORY, planned.seconds, graph))
        return self._runner.start(self._job(id, graph, planned, query.text)), graph.head

    def _single_node_job(
        self, id: QueryId, dataframe: datafusion.DataFrame, planned: Planned, query: LazyQuery
    ) -> SingleNodeJob:
        if self.settings.ours.flag("require_distributed"):
            require_distributed(planned.distribution)
        self._emit(QueryPlanned(id, 0, 0, planned.distribution.reason, planned.seconds, query.text))
        self._notices.note(id, planned.distribution)
        options, prepare = planned.session_options, self.tables.prepare
        exact = LOST not in (planned.distribution.reason or "")

        def explain(error: SparkfusionError) -> SparkfusionError | None:
            reads = query.changes.reads if query.changes is not None else (query.inner,)
            refused = explain_refusal(query.changes, error)
            return refused or locate_bad_line(error, reads, options, prepare, exact=exact)

        limited, spills = limit(dataframe, self.settings.ours, options, prepare)
        made: SingleNodeJob = call_datafusion(SingleNodeJob, limited, explain, spills)
        return made

    def _job(
        self, id: QueryId, graph: StageGraph, planned: Planned, text: str, writes: CopySpec | None = None
    ) -> QueryJob:
        return QueryJob(
            query=id,
            text=text,
            graph=graph,
            settings=self.settings.ours.copy(),
            options=planned.options,
            emit=self._emit,
            prepare=self.tables.prepare,
            recipe=lambda: self.tables.object_stores.recipe(stage.plan for stage in graph.stages),
            writes=writes,
            feeds=planned.feeds,
            keeps=planned.keeps,
        )

    # ---- rows into files

    def copy(self, source: LazyQuery, tail: str, mode: WriteMode | None = None) -> LazyQuery:
        """The statement that writes the rows of `source`, as the tail of a COPY says, and counts them."""
        view = f"sparkfusion_copy_{new_query_id()}"
        kept = self.settings["datafusion.execution.keep_partition_by_columns"] == "true"
        check_column_left(source.schema.names, tail, kept=kept)
        source = LazyQuery(name_nulls(source.inner, tail))
        self.context.register_view(view, source.inner)
        try:
            inner = call_datafusion(self.context.sql, f"COPY {view} {tail}")
        finally:
            self.context.deregister_table(view)
        return LazyQuery(inner, Copy(source, tail, mode))

    def _copy_job(self, id: QueryId, copies: Copy, planned: Planned) -> RunningJob:
        target = CopyTarget.parse(copies.tail)
        by_tasks = self._tasks_may_write(target, planned)
        pending = prepare_write(
            target.path,
            copies.mode,
            id,
            directory=target.is_directory,
            in_place=by_tasks,
            has_files=partial(has_files, self.tables.prepare),
        )
        if pending is None:
            return SingleNodeJob(count_of_none())
        try:
            pending_target = target.at(pending.path)
            options, store_dir = self.settings.datafusion_options(), self.settings.ours.directory()
            copier = RowCopier(id, pending_target, options, store_dir, self.tables.prepare)
            if planned.distribution.graph is not None:
                writing = WriteJob(copier, lambda writes: self.start(copies.source, planned, writes), by_tasks=by_tasks)
                return CommittingJob(writing, pending, target.path)
            single = self.copy(copies.source, pending_target.tail).inner
            job = self._single_node_job(id, single, planned, copies.source)
            write_empty = partial(copier.copy, (), copies.source.schema) if target.is_directory else None
            return CommittingJob(job, pending, target.path, write_empty)
        except BaseException:
            pending.abandon()
            raise

    def _tasks_may_write(self, target: CopyTarget, planned: Planned) -> bool:
        graph = planned.distribution.graph
        whole = graph is not None and graph.head.fetch is None and not graph.head.skip
        return whole and target.is_local_directory and self._runner.reaches(Path(target.path).absolute().parent)

    def reaches(self, directory: Path) -> bool:
        """Whether tasks can read and write this directory of the caller."""
        return self._runner.reaches(directory)

    # ---- Spark

    @property
    def runs_on_spark(self) -> bool:
        return self._runner.spark is not None

    def on_spark(self, what: str) -> SparkDataFrames:
        """What only a runner on Spark can do. Raises for other runners; `what` says what is not possible."""
        if self._runner.spark is None:
            raise UserError(f"{what}: this session does not run on Spark", hint="use sparkfusion.connect(spark)")
        return self._runner.spark

    def to_spark(self, query: LazyQuery) -> Any:
        """The result as a Spark DataFrame. `DataFrame.to_spark` says when it is computed."""
        spark = self.on_spark("cannot make a Spark DataFrame")
        planned = self.plan(query, with_rows=True)
        graph = planned.distribution.graph
        if graph is None or query.copies is not None or planned.feeds or not spark.takes(graph):
            return spark.from_rows(self.start(query, planned).read_all())
        graph = with_head_as_stage(graph)
        schema = decide_schema(query.schema, self._planner.output_schema(graph))
        return spark.to_spark(self._job(new_query_id(), graph, planned, query.text), schema)

    # ---- what users see of it

    def describe_runner(self, graph: StageGraph | None = None) -> str:
        """Where tasks of a query run and where their frames are kept, for `explain`."""
        return self._runner.describe(self.settings.ours, graph)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        self._subscribers.append(subscriber)

        def end() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return end

    def _emit(self, event: Event) -> None:
        """Tell every subscriber. Any thread calls this, several at the same time."""
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception:
                _log.exception("a subscriber failed on %s", type(event).__name__, extra=about(event.query))
