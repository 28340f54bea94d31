"""What runs inside a Spark task. It is pickled by reference: executors import it from their own sparkfusion."""

from __future__ import annotations

import gc
import itertools
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from sparkfusion.config import available_cores
from sparkfusion.errors import InternalError, LostInputError, SparkfusionError, classify
from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.ids import FeedId
from sparkfusion.runner.spark.chunks import Origin, chunks_of, failure_of
from sparkfusion.runner.spark.feed_address import FeedAddress, MailAddress
from sparkfusion.runner.spark.inputs import bind_parts, bring_inputs, take_rows, unpack_carried
from sparkfusion.runner.spark.mail.mail_call import MailCall
from sparkfusion.runner.spark.receive import receive
from sparkfusion.runner.spark.spark_task import SparkAnswer, StageWiring, ToRows, ToUrl, pack_answer, row_key
from sparkfusion.runner.spark.task_directories import TaskDirectories, task_directories
from sparkfusion.runner.spark.transfers import upload
from sparkfusion.transport.codec import pack_error
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds, TaskStores, carry_out
from sparkfusion.worker.task import TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings

if TYPE_CHECKING:
    from sparkfusion.runner.spark.driver_calls.feed_call import FeedCall


def run_on_executor(stage: StageWiring, records: Iterable[bytes]) -> Iterator[bytes]:
    """Run one task. Its record and its input rows come in, in any order. Its answer goes out, with rows if they are
    asked for.

    An error that a retry may repair is raised, so that Spark tries again. The error of the last attempt, and an error
    that a retry cannot repair, comes back as data: so it keeps its type and its message.
    """
    with task_directories(stage) as directories:
        attempt = _SparkAttempt(stage, records, directories)
        try:
            report = attempt.run()
        except SparkfusionError as error:
            again = error.retryable and attempt.tried < stage.attempts and not isinstance(error, LostInputError)
            if again or not stage.answers_errors:
                raise
            answer = SparkAnswer(attempt.key, attempt.origin.spark_attempt, error=error)
            rows = failure_of(pack_error(error), attempt.origin, attempt.outputs)
        else:
            answer = SparkAnswer(attempt.key, attempt.origin.spark_attempt, report)
            rows = itertools.chain(attempt.frames(report), attempt.copies(report))
        data = pack_answer(answer)
        if stage.news is not None:
            stage.news.add((data,))
        if not isinstance(stage.outlet, ToRows):
            yield data
            return
        try:
            for partition, row in itertools.chain(rows, [(attempt.outputs, data)]):
                if stage.outlet.keyed:
                    yield row_key(partition)
                yield row
        finally:
            attempt.discard()


def run_for_spark(stage: StageWiring, records: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """Run one task inside a plan of Spark's own. Its frames go to Spark, and so does every error."""
    with task_directories(stage) as directories:
        report = _SparkAttempt(stage, records, directories).run()
        for file in report.manifest.files:
            with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)


class _SparkAttempt:
    """One attempt at a task. Spark's number of the attempt is unique in the application, also for retries."""

    def __init__(self, stage: StageWiring, records: Iterable[bytes], directories: TaskDirectories) -> None:
        _freeze_imports_once()
        context = TaskContext.get()
        number = int(context.taskAttemptId()) if context is not None else 0
        self.tried = context.attemptNumber() + 1 if context is not None else 1
        self._received = receive(records, directories.directory("rows"))
        order = self._received.order
        self.key = order.key
        self.outputs = order.outputs
        self.origin = Origin(self._received.wiring.output, self.key.task, self.key.attempt, number)
        self._stage = stage
        self._order = replace(order, key=replace(order.key, attempt=number))
        self._inputs = directories.directory("inputs")
        self._spills = str(directories.directory("spills"))
        in_memory = order.store_memory if order.writes is None else 0
        self._store = BorrowedStore(stage.memory_home, str(directories.frames), in_memory)

    def run(self) -> TaskReport:
        try:
            wiring = self._received.wiring
            taken = take_rows(wiring.rows, self._received.chunks)
            plan = self._received.tables.bind(self._order.plan, wiring.tables)
            plan = bind_parts(plan, wiring.parts, self._stage.frames_url, self._inputs)
            there = unpack_carried(self._order.inputs, self._stage.carried, self._inputs)
            here = bring_inputs(there, self._stage.frames_url, self._inputs)
            order = replace(self._order, plan=plan, inputs=(*here, *taken.inputs))
            around = Surroundings(order.memory_on(available_cores()), self._spills)
            with self._open_feed(order) as (order, ends):
                report = carry_out(order, around, TaskStores(self._store, self._store), ends, CancelToken())
            report = self._publish(report)
        except SparkfusionError:
            raise
        except Exception as error:
            raise classify(error, self._order.key) from error
        machine = socket.gethostname()
        return replace(report, earlier_attempts=self.tried - 1, recomputed_inputs=taken.recomputed, worker=machine)

    @contextmanager
    def _open_feed(self, order: TaskOrder) -> Iterator[tuple[TaskOrder, TaskEnds]]:
        """The order with the offset at which the consumer's rows end, and the connection to the task's feed."""
        if order.feed is None:
            yield order, TaskEnds()
            return
        if self._stage.feeds is None:
            raise InternalError("the task reads a feed, but got no address of the feed server")
        with _feed_call(self._stage.feeds, order.feed.feed, self.key.task) as call:
            first = call.first if order.destination == "consumer" else 0
            yield replace(order, first=first), call.ends(order, order.compression)

    def _publish(self, report: TaskReport) -> TaskReport:
        """The report, after the frames have been uploaded to where other tasks can read them."""
        if not isinstance(self._stage.outlet, ToUrl):
            return report
        key = report.key
        sent = upload(report.manifest.files, self._stage.frames_url, f"{key.stage}-{key.task}-{key.attempt}")
        return replace(report, manifest=replace(report.manifest, files=sent))

    def frames(self, report: TaskReport) -> Iterator[tuple[int, bytes]]:
        """What the attempt wrote, as rows for the partitions of a shuffle."""
        return chunks_of(report.manifest.files, self.origin, self.outputs)

    def copies(self, report: TaskReport) -> Iterator[tuple[int, bytes]]:
        """The same rows for the partition of the answers, if they are few enough."""
        outlet = self._stage.outlet
        if isinstance(outlet, ToRows) and outlet.copy_bytes and report.manifest.bytes <= outlet.copy_bytes:
            for _, row in self.frames(report):
                yield self.outputs, row

    def discard(self) -> None:
        self._store.discard(self._order.key)


def _feed_call(address: FeedAddress | MailAddress, feed: FeedId, task: int) -> FeedCall | MailCall:
    if isinstance(address, MailAddress):
        return MailCall(address, feed, task)
    from sparkfusion.runner.spark.driver_calls.feed_call import FeedCall  # other tasks need no Flight

    return FeedCall(address, feed, task)


@cache
def _freeze_imports_once() -> None:
    """Exclude imported modules from garbage collection, which Spark runs after every task (59 ms instead of 75)."""
    gc.collect()
    gc.freeze()
