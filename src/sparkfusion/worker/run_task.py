"""Run one task: decode its plan strictly, execute it, write every output partition, measure, and always clean up."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import (
    InternalError,
    PlanTooDeepError,
    QueryCancelledError,
    SparkfusionError,
    classify,
    panics_as_errors,
)
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.delivery import GrantSink
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.sink import Sink
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.rejected import Rejects
from sparkfusion.feed.units import WorkUnit
from sparkfusion.ids import ExchangeId
from sparkfusion.plan.feed_scans import UnitFile, bind_feed, row_limit, scans_arrow
from sparkfusion.plan.key_filters import Keys, KeysOf, filter_by_keys
from sparkfusion.plan.sources import bind
from sparkfusion.plan.wire import decode, encode
from sparkfusion.plan.wire.depth import check_depth
from sparkfusion.urls import LOCAL_STORE
from sparkfusion.worker import loops
from sparkfusion.worker.arrow_streams import arrow_chunks
from sparkfusion.worker.bad_lines import find_bad_line, is_located
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.file_errors import is_about_files, name_files, name_table
from sparkfusion.worker.key_set_files import read_keys
from sparkfusion.worker.measure import operator_metrics, sum_operators
from sparkfusion.worker.task import OperatorMetrics, TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings, task_context
from sparkfusion.worker.unit_files import Chunk, FeedEnd, FeedInput, file_chunks, iterate_until_cancelled
from sparkfusion.worker.unit_rows import row_chunks, unit_directory


def run_task(
    order: TaskOrder, around: Surroundings, sink: Sink, cancel: CancelToken, feed: FeedEnd | None = None
) -> TaskReport:
    """Run a task in this thread until it is done, has failed or is cancelled.

    All output partitions are read at the same time, and each frame goes to the sink at once. On an error or a cancel
    the sink is aborted, so the attempt leaves nothing. Errors are classified and name the task.

    Args:
        feed: where the work units come from, for a task that reads a feed.
    """
    try:
        return _run_task(order, around, sink, cancel, feed)
    except BaseException as error:
        _forget_frames(error)
        raise


def _run_task(
    order: TaskOrder, around: Surroundings, sink: Sink, cancel: CancelToken, feed: FeedEnd | None
) -> TaskReport:
    started_at, started = time.time(), time.perf_counter()
    try:
        run = _Run(task_context(order.options, around), order, around, sink, cancel)
        if order.feed is None:
            run.whole()
        else:
            assert feed is not None
            run.by_units(order.feed, feed)
        manifest = sink.finish()
    except (asyncio.CancelledError, ChannelClosedError):
        sink.abort()
        raise QueryCancelledError("the task was cancelled", where=order.key) from None
    except BaseException as error:
        sink.abort()
        found = classify(error, order.key)
        if found is error:
            raise
        raise found from error
    seconds = time.perf_counter() - started
    rejected = run.rejects.of_table(order.feed.table) if order.feed is not None else None
    return TaskReport(
        order.key,
        manifest,
        run.rows,
        seconds,
        run.operators,
        units=run.units,
        rejected=rejected,
        started_at=started_at,
    )


class _Run:
    """The execution of one task. Its plan runs once; with a feed it runs again and again, over some units at a time."""

    def __init__(
        self, context: SessionContext, order: TaskOrder, around: Surroundings, sink: Sink, cancel: CancelToken
    ) -> None:
        self._context = context
        self._order = order
        self._around = around
        self._sink = sink
        self._cancel = cancel
        self._plan = _bind_inputs(order)
        self.rows = 0
        self.units = 0
        self.rejects = Rejects()
        self.operators: tuple[OperatorMetrics, ...] = ()

    def whole(self) -> None:
        self._execute(self._plan, self._sink)

    def by_units(self, feed: FeedInput, end: FeedEnd) -> None:
        """Run the plan over units until there are no more, or until there are enough rows. If there is no unit at all,
        the plan runs over no rows: some aggregates return a row for that."""
        enough = row_limit(self._plan)
        remote = WorkUnitFeed.remote(str(feed.feed), end.units, trust_python=self._around.trust_python)
        with unit_directory(self._around.spill_directory) as directory:
            for offset, units in enumerate(remote.batches(first=end.first), end.first):
                try:
                    for store, files in self._chunks(units, feed, end, directory):
                        self._scan(store, files, feed)
                    if isinstance(self._sink, GrantSink):
                        self._sink.commit(offset)
                except (asyncio.CancelledError, ChannelClosedError, QueryCancelledError):
                    raise
                except BaseException:
                    end.units.report_failure(offset)
                    raise
                self.units += len(units)
                if enough is not None and self.rows >= enough:
                    end.units.enough()
                    return
                if self._cancel.cancelled:
                    raise asyncio.CancelledError
        if not self.operators:
            self._execute(bind_feed(self._plan, [], LOCAL_STORE), self._sink)

    def _chunks(self, units: Iterable[WorkUnit], feed: FeedInput, end: FeedEnd, directory: Path) -> Iterator[Chunk]:
        wanted = iterate_until_cancelled(units, self._cancel)
        if feed.files and scans_arrow(self._plan):
            return arrow_chunks(wanted, feed, directory, self._cancel)
        if feed.files:
            return file_chunks(wanted, feed)
        assert end.reader is not None
        return row_chunks(wanted, feed, end.reader, directory, self._cancel, self.rejects)

    def _scan(self, store: str, files: list[UnitFile], feed: FeedInput) -> None:
        try:
            self._execute(bind_feed(self._plan, files, store), self._sink)
        except SparkfusionError as error:
            if not feed.files or not (is_located(error) or is_about_files(error)):
                raise
            if not is_located(error) and len(files) > 1 and not self._cancel.cancelled:
                self._blame_one(error, store, files)
            raise name_table(error, feed.table) from error

    def _blame_one(self, error: SparkfusionError, store: str, files: list[UnitFile]) -> None:
        """Find the first file that cannot be read, by reading the files one by one."""
        for file in files:
            try:
                self._execute(bind_feed(self._plan, [file], store), _Nowhere())
            except SparkfusionError as found:
                error.hint = found.hint
                return

    def _execute(self, encoded: bytes, sink: Sink) -> None:
        try:
            check_depth(encoded)
            with panics_as_errors():
                plan, rows = loops.run(_run_plan(self._context, encoded, self._order.outputs, sink, self._cancel))
            self.rows += rows
        except (asyncio.CancelledError, ChannelClosedError):
            raise
        except Exception as error:
            found = self._locate_line(classify(error, self._order.key), encoded)
            name_files(found, encoded)
            if found is error:
                raise
            raise found from error
        self.operators = sum_operators(each for each in (self.operators, operator_metrics(plan)) if each)

    def _locate_line(self, error: SparkfusionError, encoded: bytes) -> SparkfusionError:
        """The error with the line that it is about; unchanged if it is about no line, or if the search fails."""

        def run(alone: bytes) -> None:
            loops.run(_run_plan(self._context, alone, 1, _Nowhere(), self._cancel))

        with suppress(Exception):
            return find_bad_line(error, encoded, run) or error
        return error


class _Nowhere:
    """A sink that drops all rows."""

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        return

    def finish(self) -> Manifest:
        raise InternalError("nothing was kept")

    def abort(self) -> None:
        return


def _forget_frames(error: BaseException | None) -> None:
    """Clear the stack frames of an error's tracebacks: they keep the task's context alive, and its spill directory."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _bind_inputs(order: TaskOrder) -> bytes:
    if not order.inputs:
        return order.plan
    files = {(each.exchange, each.group): each.files for each in order.inputs}

    @cache
    def find_keys(exchange: ExchangeId, column: int) -> Keys | None:
        found = (each for (number, _), group in files.items() if number == exchange for each in group)
        return read_keys(found, column)

    def find_one_key(exchange: ExchangeId, column: int) -> Keys | None:
        keys = find_keys(exchange, column)
        return keys and replace(keys, values=keys.values[:1])

    def encode_bound(keys_of: KeysOf) -> bytes:
        root = decode(order.plan)
        filter_by_keys(root, keys_of)
        return encode(bind(root, lambda exchange, group: files[exchange, group]))

    try:
        check_depth(encode_bound(find_one_key))  # as deep as with all keys, and quickly checked
        return encode_bound(find_keys)
    except PlanTooDeepError:  # a predicate goes deeper with every key set
        return encode_bound(lambda exchange, column: None)


async def _run_plan(
    context: SessionContext, encoded: bytes, outputs: int, sink: Sink, cancel: CancelToken
) -> tuple[ExecutionPlan, int]:
    """Decode the plan and read every output partition concurrently. If they were read one by one, the repartition of a
    shuffle would buffer the others."""
    loop = asyncio.get_running_loop()
    plan = ExecutionPlan.from_bytes(context, encoded)
    work = asyncio.gather(*(_drain(context, plan, partition, sink) for partition in range(outputs)))
    cancel.watch(lambda: loop.call_soon_threadsafe(work.cancel))
    try:
        return plan, sum(await work)
    finally:
        cancel.watch(None)


async def _drain(context: SessionContext, plan: ExecutionPlan, partition: int, sink: Sink) -> int:
    rows = 0
    async for frame in context.execute(plan, partition):
        batch = frame.to_pyarrow()
        rows += batch.num_rows
        sink.write(partition, batch)
    return rows
