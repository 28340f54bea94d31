"""What runs inside a Spark task. Shipped by reference: executors import it from their own sparkfusion."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from pyspark import TaskContext

from sparkfusion.config import MIB, available_cores, machine_memory
from sparkfusion.errors import SparkfusionError, classify
from sparkfusion.exchange.chunks import ChunkSpool, Origin, chunks_of, failure_of, is_chunk
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.runner.spark.inputs import LostOutputError, take_rows
from sparkfusion.runner.spark.order import SparkAnswer, SparkTask, StageOrder, ToRows
from sparkfusion.runner.spark.rows import key as row_key
from sparkfusion.runner.spark.workplace import workplace
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskReport, TaskSpec

_MEMORY_SHARE = 6, 10


def run_on_executor(order: StageOrder, records: Iterable[bytes]) -> Iterator[bytes]:
    """Run one task: its record and its input rows come in, in any order; its answer goes out, with rows if asked for.

    An error that a retry may mend is raised, so that Spark tries again. The last attempt's error comes back as data,
    like one that cannot be mended, so that it keeps its kind and its words.
    """
    _settle_once()
    with workplace(order) as place:
        spool = ChunkSpool(place.directory("rows"))
        task: SparkTask | None = None
        for record in records:
            if is_chunk(record):
                spool.add(record)
            elif task is None:
                task = pickle.loads(pickle.loads(record)[0])
        assert task is not None
        attempt = _Attempt()
        origin = Origin(task.output, task.key.task, task.key.attempt, attempt.id)
        spec = replace(
            task.spec(order),
            key=replace(task.key, attempt=attempt.id),
            memory_limit=task.memory_limit or _memory_share(),
            spill_directory=str(place.directory("spills")),
        )
        store = BorrowedStore(order.memory_home, str(place.frames), task.memory_budget)
        try:
            report = _run(task, order, spec, spool, store)
        except SparkfusionError as error:
            if error.retryable and attempt.tried < order.attempts and not isinstance(error, LostOutputError):
                raise
            yield from _failure(task, order, origin, error)
            return
        answer = SparkAnswer(task.key, attempt.id, replace(report, failed_attempts=attempt.tried - 1))
        if not isinstance(order.destination, ToRows):
            yield pickle.dumps(answer)
            return
        try:
            yield from _rows(task, order.destination, origin, answer)
        finally:
            store.discard(spec.key)


def _run(task: SparkTask, order: StageOrder, spec: TaskSpec, spool: ChunkSpool, store: BorrowedStore) -> TaskReport:
    try:
        taken = take_rows(task.rows, spool)
        spec = replace(spec, inputs=(*spec.inputs, *taken.inputs))
        report = run_task(spec, FileSink(spec.key, store, order.compression), CancelToken())
    except SparkfusionError:
        raise
    except Exception as error:
        raise classify(error, spec.key) from error
    return replace(report, recomputed_inputs=taken.recomputed)


def _rows(task: SparkTask, to: ToRows, origin: Origin, answer: SparkAnswer) -> Iterator[bytes]:
    assert answer.report is not None
    for partition, row in chunks_of(answer.report.manifest.files, origin, task.outputs):
        yield from _addressed(to, partition, row)
    yield from _addressed(to, task.outputs, pickle.dumps(answer))


def _failure(task: SparkTask, order: StageOrder, origin: Origin, error: SparkfusionError) -> Iterator[bytes]:
    answer = pickle.dumps(SparkAnswer(task.key, origin.host_attempt, error=error))
    if not isinstance(order.destination, ToRows):
        yield answer
        return
    for partition, row in failure_of(error, origin, task.outputs):
        yield from _addressed(order.destination, partition, row)
    yield from _addressed(order.destination, task.outputs, answer)


def _addressed(to: ToRows, partition: int, row: bytes) -> Iterator[bytes]:
    if to.keyed:
        yield row_key(partition)
    yield row


class _Attempt:
    """Spark's count of this attempt: `id` is unique in the application, whatever is retried or speculated."""

    def __init__(self) -> None:
        context = TaskContext.get()
        self.id = int(context.taskAttemptId()) if context is not None else 0
        self.tried = context.attemptNumber() + 1 if context is not None else 1


def _memory_share() -> int:
    part, whole = _MEMORY_SHARE
    return max(64 * MIB, machine_memory() * part // whole // available_cores())


@cache
def _settle_once() -> None:
    """Spark collects garbage after every task; what was imported need not be looked at again (75 to 59 ms a task)."""
    gc.collect()
    gc.freeze()
