"""What runs inside a Spark task. Shipped by reference: executors import it from their own sparkfusion."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

from sparkfusion.config import MIB, available_cores, machine_memory
from sparkfusion.errors import SparkfusionError, classify
from sparkfusion.exchange.chunks import Origin, chunks_of, failure_of
from sparkfusion.exchange.delivery import GrantSink
from sparkfusion.exchange.remote import upload
from sparkfusion.exchange.sink import FileSink, Sink
from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.runner.spark.inputs import LostOutputError, localized, take_rows
from sparkfusion.runner.spark.order import SparkAnswer, SparkTask, StageOrder, ToRows, ToUrl
from sparkfusion.runner.spark.receive import receive
from sparkfusion.runner.spark.rows import key as row_key
from sparkfusion.runner.spark.workplace import Workplace, workplace
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.copy import CopySink
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskReport
from sparkfusion.worker.units import FeedEnd

_MEMORY_SHARE = 6, 10


def run_on_executor(order: StageOrder, records: Iterable[bytes]) -> Iterator[bytes]:
    """Run one task: its record and its input rows come in, in any order; its answer goes out, with rows if asked for.

    An error that a retry may mend is raised, so that Spark tries again. The last attempt's error comes back as data,
    like one that cannot be mended, so that it keeps its kind and its words.
    """
    with workplace(order) as place:
        attempt = _Attempt(order, records, place)
        task, origin = attempt.task, attempt.origin
        try:
            report = attempt.run()
        except SparkfusionError as error:
            again = error.retryable and attempt.tried < order.attempts and not isinstance(error, LostOutputError)
            if again or not order.answers_errors:
                raise
            yield from _failure(task, order, origin, error)
            return
        answer = _told(order, SparkAnswer(task.key, origin.host_attempt, report))
        if not isinstance(order.destination, ToRows):
            yield answer
            return
        try:
            for partition, row in chunks_of(report.manifest.files, origin, task.outputs):
                yield from _addressed(order.destination, partition, row)
            yield from _addressed(order.destination, task.outputs, answer)
        finally:
            attempt.discard()


def run_for_spark(order: StageOrder, records: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """Run one task inside a plan of Spark's own: its frames go to Spark, and so does every error."""
    with workplace(order) as place:
        report = _Attempt(order, records, place).run()
        for file in report.manifest.files:
            with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)


class _Attempt:
    """One attempt at a task. Spark's own count of it is unique in its application, whatever is retried."""

    def __init__(self, order: StageOrder, records: Iterable[bytes], place: Workplace) -> None:
        _settle_once()
        context = TaskContext.get()
        number = int(context.taskAttemptId()) if context is not None else 0
        self.tried = context.attemptNumber() + 1 if context is not None else 1
        self._received = receive(records, place.directory("rows"))
        self.task = self._received.task
        self.origin = Origin(self.task.output, self.task.key.task, self.task.key.attempt, number)
        self._order = order
        self._place = place.directory("inputs")
        in_memory = self.task.memory_budget if order.writes is None else 0
        self._store = BorrowedStore(order.memory_home, str(place.frames), in_memory)
        self._spec = replace(
            self.task.spec(order),
            key=replace(self.task.key, attempt=number),
            memory_limit=self.task.memory_limit or _memory_share(),
            spill_directory=str(place.directory("spills")),
        )

    def run(self) -> TaskReport:
        try:
            taken = take_rows(self.task.rows, self._received.chunks)
            plan = self._received.tables.bind(self._spec.plan, self.task.tables)
            here = localized(self._spec.inputs, self._order.frames_url, self._place)
            spec = replace(self._spec, plan=plan, inputs=(*here, *taken.inputs))
            feed = self._feed()
            report = run_task(spec, self._sink(feed), CancelToken(), self._order.prepare, feed)
            report = self._published(report)
        except SparkfusionError:
            raise
        except Exception as error:
            raise classify(error, self._spec.key) from error
        return replace(report, earlier_attempts=self.tried - 1, recomputed_inputs=taken.recomputed)

    def _published(self, report: TaskReport) -> TaskReport:
        """The report after its frames are where others can read them."""
        if not isinstance(self._order.destination, ToUrl):
            return report
        key = report.key
        sent = upload(report.manifest.files, self._order.frames_url, f"{key.stage}-{key.task}-{key.attempt}")
        return replace(report, manifest=replace(report.manifest, files=sent))

    def _feed(self) -> FeedEnd | None:
        if self.task.feed is None or self._order.feeds is None:
            return None
        from sparkfusion.feed.service_client import RemoteUnits

        units = RemoteUnits(self._order.feeds, self.task.feed.feed, self.task.key.task)
        reader = self._order.readers.get(self.task.feed.feed)
        return FeedEnd(units, reader, units.first(), units.deliver) if self.task.streams else FeedEnd(units, reader)

    def _sink(self, feed: FeedEnd | None) -> Sink:
        if self._order.writes is not None:
            return CopySink(self._spec.key, self._store, self._order.writes)
        if feed is not None and feed.deliver is not None:
            return GrantSink(self._spec.key, self._spec.spill_directory, feed.deliver)
        return FileSink(self._spec.key, self._store, self._order.compression)

    def discard(self) -> None:
        self._store.discard(self._spec.key)


def _failure(task: SparkTask, order: StageOrder, origin: Origin, error: SparkfusionError) -> Iterator[bytes]:
    answer = _told(order, SparkAnswer(task.key, origin.host_attempt, error=error))
    if not isinstance(order.destination, ToRows):
        yield answer
        return
    for partition, row in failure_of(error, origin, task.outputs):
        yield from _addressed(order.destination, partition, row)
    yield from _addressed(order.destination, task.outputs, answer)


def _told(order: StageOrder, answer: SparkAnswer) -> bytes:
    data = pickle.dumps(answer)
    if order.news is not None:
        order.news.add((data,))
    return data


def _addressed(to: ToRows, partition: int, row: bytes) -> Iterator[bytes]:
    if to.keyed:
        yield row_key(partition)
    yield row


def _memory_share() -> int:
    part, whole = _MEMORY_SHARE
    return max(64 * MIB, machine_memory() * part // whole // available_cores())


@cache
def _settle_once() -> None:
    """Spark collects garbage after every task; what was imported need not be looked at again (75 to 59 ms a task)."""
    gc.collect()
    gc.freeze()
