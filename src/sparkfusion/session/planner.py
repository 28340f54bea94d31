"""Plan a query for distribution: DataFusion plans it with options that are safe for isolated tasks, then it is cut."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion import config
from sparkfusion.config import ALWAYS
from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import PlanTooDeepError, PlanTooLargeError, SparkfusionError
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.plan.distribute import ISOLATION_OPTIONS, distribute
from sparkfusion.plan.feed_scans import FeedScan
from sparkfusion.plan.first_stages import FirstStages
from sparkfusion.plan.functions import register_spark_functions, spark_functions
from sparkfusion.plan.gate import NotDistributableError, check_arrow_scans, check_logical
from sparkfusion.plan.key_set_choice import KeySetPolicy
from sparkfusion.plan.reversed_windows import write_reversal
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.sizing import choose_partitions, in_memory_weight, scan_bytes
from sparkfusion.plan.stage import Distribution, StageGraph, Why
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.whole import keep_whole
from sparkfusion.plan.wide import widen
from sparkfusion.plan.wire import PlanNode, decode, encode, kind, walk
from sparkfusion.plan.wire.build import union
from sparkfusion.plan.wire.depth import check_depth, too_deep
from sparkfusion.session.chains import computes_long_chain
from sparkfusion.session.forked import check_not_forked
from sparkfusion.session.memory_rows import survey
from sparkfusion.session.memory_tables import Reference
from sparkfusion.session.physical_plan import (
    BYTES_PER_ROW,
    PhysicalPlan,
    array_join_options,
    make_physical_plan,
    task_options,
)
from sparkfusion.session.planning_checks import encode_plan, leaf_bytes, single_node_plans, too_small, why_not_planned
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.session.session_tables import SessionTables
from sparkfusion.session.spool import TableSpool
from sparkfusion.session.task_width import Machines, TaskWidth, choose_width, most_partitions
from sparkfusion.session.vanished_files import TABLE_SCAN
from sparkfusion.worker.task_context import SPARK_FUNCTIONS_OPTION, session_config

_TIME_ZONE = "datafusion.execution.time_zone"
_STATEMENT = re.compile(r"CopyTo: |Explain|Analyze")
_OF_FILES = re.compile(r"\b(?:input_file_name|file_row_index)\(")  # functions that only scans of files can answer
_SUBQUERIES = "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery"


@dataclass(frozen=True)
class Planned:
    """A query after planning.

    Attributes:
        options: the `datafusion.*` options it was planned with, for the workers.
        session_options: those of the session, for a single node.
        plan: the whole plan as DataFusion made it for distribution, encoded; None where that was not possible.
        feeds: the scans of feeds in it.
        keeps: what owns the tables that it reads, and their files. They are there as long as somebody has it.
        seconds: all of planning. `cut_seconds`: our part of it.
    """

    distribution: Distribution
    options: dict[str, str]
    session_options: dict[str, str]
    plan: bytes | None
    seconds: float
    cut_seconds: float = 0.0
    feeds: tuple[FeedDeclaration, ...] = ()
    keeps: tuple[object, ...] = ()


class Planner:
    """Plans the queries of one session, one at a time; safe to call from several threads."""

    def __init__(
        self,
        settings: SessionSettings,
        tables: SessionTables,
        tasks_see_files: Callable[[], bool] = lambda: True,
        machines: Callable[[], Machines] = Machines,
    ) -> None:
        """`machines`: where tasks run."""
        check_not_forked()
        self._settings = settings
        self._tables = tables
        self._tasks_see_files = tasks_see_files
        self._machines = machines
        self._lock = threading.Lock()
        self._spool = TableSpool()
        self._probes: dict[tuple[str, ...], SchemaProbe] = {}

    def close(self) -> None:
        self._spool.close()

    def output_schema(self, graph: StageGraph) -> pa.Schema:
        """The schema of the last stage's rows; DataFusion determines coerced types only while it optimizes."""
        with self._lock:
            return self._probe_for(graph.spark_functions).describe(decode(graph.stages[-1].plan)).arrow

    def plan(self, dataframe: datafusion.DataFrame, *, with_rows: bool = False, split: bool = False) -> Planned:
        """Decide how a query runs. Raises for invalid queries, never for queries that cannot be distributed.

        Args:
            with_rows: in-memory tables stay in the plan, whatever their size: it may run after the session is closed.
            split: the query is split into tasks, even where one task could run the whole plan.
        """
        started = time.perf_counter()
        check_not_forked()
        with self._lock:
            self._tables.vanished_files.check(dataframe)
            attempt = _Attempt(self._settings.ours, self._settings.datafusion_options(), with_rows=with_rows)
            attempt.split = split or with_rows
            try:
                graph = self._distribute(dataframe, attempt)
            except (NotDistributableError, PlanTooDeepError) as error:
                refusal = error if isinstance(error, NotDistributableError) else NotDistributableError(error.message)
                self._tables.refuse_single_node(dataframe, str(refusal))
                distribution = Distribution(reason=str(refusal), why=self._why(refusal, dataframe, attempt.physical))
            else:
                distribution = Distribution(graph)
        seconds = time.perf_counter() - started
        return Planned(
            distribution=distribution,
            options=attempt.options,
            session_options=attempt.base_options,
            plan=attempt.encoded,
            seconds=seconds,
            cut_seconds=attempt.cut_seconds,
            feeds=attempt.declared,
            keeps=(dataframe.logical_plan(), *attempt.keeps),
        )

    def keep_here(self, reads: Sequence[datafusion.DataFrame], reason: str) -> Planned:
        """The plan of a statement that runs in this process in any case; `reads` are the queries in it: the one
        whose rows it takes, then the table that it changes."""
        with self._lock:
            self._tables.feeds.refuse_writes(reads[1:])
            for query in reads:
                self._tables.vanished_files.check(query)
                self._tables.refuse_single_node(query, reason)
            distribution = Distribution(reason=reason, why=self._why(NotDistributableError(reason), reads[0]))
            options = self._settings.datafusion_options()
            return Planned(distribution, options, session_options=options, plan=None, seconds=0.0)

    def _distribute(self, dataframe: datafusion.DataFrame, attempt: _Attempt) -> StageGraph:
        settings = attempt.settings
        if not settings.flag("enabled"):
            raise NotDistributableError("sparkfusion.enabled is false", Why.SWITCHED_OFF)
        logical = dataframe.logical_plan()
        text = logical.display_indent()
        tables = dict.fromkeys(TABLE_SCAN.findall(text))
        check_logical(text, {table: lost for table in tables if (lost := self._tables.lossy.lost_options_of(table))})
        if computes_long_chain(text):  # planning it takes seconds, for a plan that would be refused
            raise too_deep()
        upper = int(attempt.options[TARGET_PARTITIONS]) or config.available_cores()
        attempt.machines = self._machines()
        upper = most_partitions(settings, attempt.machines, upper)
        attempt.slots = max(2, upper)
        try:
            root = self._choose(dataframe, attempt, upper)
        except SparkfusionError as error:
            error.hint = error.hint or (f"the query reads {', '.join(tables)}" if tables else None)
            raise
        if attempt.width.is_wide:
            partitions = int(attempt.options[TARGET_PARTITIONS])
            attempt.options |= array_join_options(attempt.base_options, partitions)
        started = time.perf_counter()
        if not attempt.with_rows and self._tasks_see_files():
            attempt.keeps += self._spool.spool(root, settings.integer("memory_table_bytes"), settings.directory())
        assert attempt.planned is not None
        functions = spark_functions(attempt.planned)
        attempt.options[SPARK_FUNCTIONS_OPTION] = ",".join(functions)
        probe = self._probe_for(functions)
        broadcast = settings.integer("broadcast_bytes")
        small = self._tables.feeds.small(attempt.feeds, broadcast, broadcast // BYTES_PER_ROW)
        first = _first_stages(attempt)
        if attempt.width.whole is not None:
            graph = keep_whole(root, attempt.planned.schema().names, attempt.width.whole, probe, first)
        else:
            graph = distribute(root, probe, small, self._tables.of_spark.small(broadcast), first)
            graph = widen(graph, attempt.width.tasks, attempt.width.per_task)
        notes = (f"tasks of one partition: {attempt.width.why}",) if attempt.width.why is not None else ()
        graph = replace(graph, spark_functions=functions, notes=notes)
        if attempt.feeds:
            attempt.declared = self._tables.feeds.declare(attempt.feeds, attempt.planned.optimized_logical_plan())
        if graph.head.plan is not None and (reads := tables_read(decode(graph.head.plan))):
            raise NotDistributableError(
                f"part of the plan that reads Spark table {reads[0].name!r} would run outside Spark"
            )
        _check_plan_size(graph, settings.integer("max_plan_bytes"), list(tables))
        attempt.cut_seconds = time.perf_counter() - started
        return graph

    def _choose(self, dataframe: datafusion.DataFrame, attempt: _Attempt, upper: int) -> PlanNode:
        """The query's plan, for as many partitions as its size justifies."""
        logical = dataframe.logical_plan()
        try:
            with self._tables.in_memory.notice_references() as referred:
                physical = attempt.physical = self._physical(logical, attempt, upper)
        except SparkfusionError as error:
            if single_node_plans(dataframe):
                raise NotDistributableError(why_not_planned(error)) from error
            raise
        held, others = survey(physical.plan)
        if held <= attempt.settings.integer("memory_table_bytes"):
            root, held = self._encode(physical, attempt), 0
        else:  # encoding the whole plan would copy those rows
            root = union(decode(encode_plan(leaf, physical.context)) for leaf in others)
            self._mark(root, attempt)
        scanned = scan_bytes(root) + in_memory_weight(held)
        wanted = choose_partitions(scanned, attempt.settings.integer("bytes_per_partition"), upper)
        if self._tables.feeds.any_unsized(attempt.feeds):
            wanted = upper
        if attempt.reads_adopted_tables or attempt.feeds:
            wanted = max(2, wanted)
        elif wanted == 1:
            worth_two = choose_partitions(scanned, attempt.settings.integer("bytes_per_partition"), 2) == 2
            raise NotDistributableError(too_small(scanned, upper), Why.SWITCHED_OFF if worth_two else Why.SMALL)
        if not (attempt.split or attempt.feeds or attempt.reads_adopted_tables):
            attempt.width = choose_width(attempt.settings, attempt.base_options, attempt.machines, upper, scanned)
            wanted = attempt.width.whole or wanted
        by_reference = held and referred and not _OF_FILES.search(physical.plan.display_indent())
        if by_reference and not attempt.with_rows and self._tasks_see_files():
            return self._encode_by_reference(logical, attempt, wanted, referred)
        if wanted != upper:
            physical = self._physical(logical, attempt, wanted)
        return root if wanted == upper and not held else self._encode(physical, attempt)

    def _encode_by_reference(
        self, logical: datafusion.LogicalPlan, attempt: _Attempt, partitions: int, referred: set[Reference]
    ) -> PlanNode:
        """The query's plan, with scans of files for these tables, whose rows are in memory."""
        with self._tables.in_memory.in_files(referred, attempt.settings.directory()) as files:
            physical = self._physical(logical, attempt, partitions)
        root = self._encode(physical, attempt)
        self._tables.in_memory.point_to_versions(root, files)
        attempt.keeps += tuple(files)
        return root

    def _physical(
        self,
        logical: datafusion.LogicalPlan,
        attempt: _Attempt,
        partitions: int,
        extra: Mapping[str, str] | None = None,
    ) -> PhysicalPlan:
        """DataFusion's physical plan of the query for so many partitions."""
        attempt.options = task_options(attempt.settings, attempt.base_options, partitions)
        return make_physical_plan(logical, {**attempt.options, **(extra or {})}, self._tables.prepare)

    def _encode(self, physical: PhysicalPlan, attempt: _Attempt) -> PlanNode:
        encoded = encode_plan(physical.plan, physical.context)
        check_depth(encoded)
        attempt.encoded = encoded
        if attempt.options.get(_TIME_ZONE) and b"to_timestamp" in attempt.encoded:
            raise NotDistributableError("to_timestamp loses the session's time zone when the plan is encoded")
        root = decode(attempt.encoded)
        if write_reversal(root):
            attempt.encoded = encode(root)
        self._mark(root, attempt)
        attempt.planned = physical.dataframe
        if any(kind(node) == "arrow_scan" for node in walk(root)):
            check_arrow_scans(root, physical.plan.display_indent())
        return root

    def _mark(self, root: PlanNode, attempt: _Attempt) -> None:
        self._tables.of_catalog.links.point_to_files(root)
        attempt.reads_adopted_tables = self._tables.of_spark.mark(root)
        per_task = attempt.settings.integer("bytes_per_partition")
        tasks_for = partial(choose_partitions, bytes_per_partition=per_task, upper_bound=attempt.slots)
        attempt.feeds = self._tables.feeds.mark(root, tasks_for, attempt.options)

    def _why(
        self, refusal: NotDistributableError, dataframe: datafusion.DataFrame, physical: PhysicalPlan | None = None
    ) -> Why:
        """The kind of a refusal. A query that reads little counts as small, even if there are other reasons."""
        settings = self._settings.ours
        if refusal.why is Why.SMALL:
            return Why.SMALL
        if refusal.why is Why.SWITCHED_OFF and not settings.flag("require_distributed"):
            return Why.SWITCHED_OFF
        try:
            scanned = self._readable_bytes(dataframe.logical_plan(), physical)
        except SparkfusionError:  # the query is wrong, and its user is told when it runs
            return Why.SMALL
        worth = choose_partitions(scanned, settings.integer("bytes_per_partition"), 2) == 2
        return refusal.why if worth else Why.SMALL

    def _readable_bytes(self, logical: datafusion.LogicalPlan, physical: PhysicalPlan | None) -> int:
        """About how many bytes a query reads, also if it cannot be encoded. EXPLAIN and similar statements count with
        their query.

        Args:
            physical: its plan, if it was planned before: planning a very long expression takes seconds.
        """
        while _STATEMENT.match(logical.display()) and logical.inputs():
            (logical, *_) = logical.inputs()
            physical = None
        if physical is None and computes_long_chain(logical.display_indent()):
            return sum(self._readable_bytes(table, None) for table in _leaves(logical))
        if physical is None:
            attempt = _Attempt(self._settings.ours, self._settings.datafusion_options(), with_rows=False)
            physical = self._physical(logical, attempt, 2, {_SUBQUERIES: "true"})
        held, others = survey(physical.plan)
        return in_memory_weight(held) + sum(leaf_bytes(leaf, physical.context) for leaf in others)

    def _probe_for(self, functions: tuple[str, ...]) -> SchemaProbe:
        """A probe that knows these functions of Spark's. A scan is not even decoded without its object store."""
        if functions not in self._probes:
            context = SessionContext(session_config(ISOLATION_OPTIONS))
            register_spark_functions(context, functions)
            self._probes[functions] = SchemaProbe(context)
        self._tables.prepare(self._probes[functions].context)
        return self._probes[functions]


class _Attempt:
    """What one call of `plan` collects."""

    def __init__(self, settings: config.Settings, options: dict[str, str], *, with_rows: bool) -> None:
        self.settings = settings
        self.with_rows = with_rows
        self.split = False
        self.width = TaskWidth()
        self.machines = Machines()
        self.base_options = options
        self.options = options
        self.encoded: bytes | None = None
        self.cut_seconds = 0.0
        self.reads_adopted_tables = False
        self.slots = 2
        self.feeds: tuple[FeedScan, ...] = ()
        self.planned: datafusion.DataFrame | None = None
        self.declared: tuple[FeedDeclaration, ...] = ()
        self.physical: PhysicalPlan | None = None
        self.keeps: tuple[object, ...] = ()


def _first_stages(attempt: _Attempt) -> FirstStages | None:
    """What runs first; None if nothing may. A plan with rows in it has none: it may run on Spark without a coordinator,
    which would have to decide on them."""
    if attempt.with_rows:
        return None
    settings = attempt.settings
    most, shared = settings.integer("key_set_bytes"), settings.integer("shared_aggregate_bytes")
    least = settings.integer("bytes_per_partition")
    key_sets = KeySetPolicy(least, forced=most == ALWAYS, shuffles=attempt.width.whole is None) if most else None
    return FirstStages(key_sets, least_shared_bytes=max(0, shared) if shared else None)


def _leaves(logical: datafusion.LogicalPlan) -> list[datafusion.LogicalPlan]:
    """The scans of a query's tables."""
    found, waiting = [], [logical]
    while waiting:
        inputs = (plan := waiting.pop()).inputs()
        waiting += inputs
        found += [] if inputs else [plan]
    return found


def _check_plan_size(graph: StageGraph, limit: int, tables: list[str]) -> None:
    for stage in graph.stages:
        check_depth(stage.plan)  # rules add nodes
    largest = max(len(stage.plan) for stage in graph.stages)
    if largest > limit:
        raise PlanTooLargeError(
            f"the plan over {', '.join(tables) or 'this query'} takes {largest:,} bytes, more than {limit:,}",
            hint="write in-memory tables to Parquet and register those, or raise sparkfusion.max_plan_bytes",
        )
