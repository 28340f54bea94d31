"""Run one task: decode strictly, execute, write every output partition, measure, clean up in every case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import QueryCancelledError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.sink import Sink
from sparkfusion.plan.sources import bind_encoded
from sparkfusion.worker import loops
from sparkfusion.worker.blame import name_files
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.measure import operator_metrics
from sparkfusion.worker.session import task_context
from sparkfusion.worker.task import TaskReport, TaskSpec

PrepareContext = Callable[[SessionContext], None]


def run_task(spec: TaskSpec, sink: Sink, cancel: CancelToken, prepare: PrepareContext | None = None) -> TaskReport:
    """Run a task in this thread until it is done, failed or cancelled.

    All output partitions are drained at the same time, each frame going to the sink as it comes. On an error or a
    cancel the sink is aborted, so nothing of the attempt is left. Errors come out classified, with the task's name.

    Args:
        prepare: called with the fresh context, for what cannot travel as data (object stores).
    """
    started = time.perf_counter()
    try:
        context = task_context(
            spec.options,
            memory_limit=spec.memory_limit,
            spill_directory=spec.spill_directory,
            trust_python=spec.trust_python,
        )
        if prepare is not None:
            prepare(context)
        plan = ExecutionPlan.from_bytes(context, _bound(spec))
        rows = loops.run(_drain_all(context, plan, spec.outputs, sink, cancel))
        manifest = sink.finish()
    except (asyncio.CancelledError, ChannelClosedError):
        sink.abort()
        raise QueryCancelledError("the task was cancelled", where=spec.key) from None
    except BaseException as error:
        sink.abort()
        found = classify(error, spec.key)
        name_files(found, spec.plan)
        if found is error:
            raise
        raise found from error
    return TaskReport(spec.key, manifest, rows, time.perf_counter() - started, operator_metrics(plan))


def _bound(spec: TaskSpec) -> bytes:
    if not spec.inputs:
        return spec.plan
    files = {(each.exchange, each.group): each.files for each in spec.inputs}
    return bind_encoded(spec.plan, lambda exchange, group: files[exchange, group])


async def _drain_all(
    context: SessionContext, plan: ExecutionPlan, outputs: int, sink: Sink, cancel: CancelToken
) -> int:
    """Drain every output partition concurrently; a shuffle's repartition would otherwise buffer the others."""
    loop = asyncio.get_running_loop()
    work = asyncio.gather(*(_drain(context, plan, partition, sink) for partition in range(outputs)))
    cancel.watch(lambda: loop.call_soon_threadsafe(work.cancel))
    try:
        return sum(await work)
    finally:
        cancel.watch(None)


async def _drain(context: SessionContext, plan: ExecutionPlan, partition: int, sink: Sink) -> int:
    rows = 0
    async for frame in context.execute(plan, partition):
        batch = frame.to_pyarrow()
        rows += batch.num_rows
        sink.write(partition, batch)
    return rows
