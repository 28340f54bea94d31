"""The records of a stage's tasks as a DataFrame, one partition for each task, and what runs over it on executors."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sparkfusion.runner.spark.spark_task import TaskFunction

if TYPE_CHECKING:
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

ANSWER = "answer binary"
"""The schema of what every job of ours returns."""

T = TypeVar("T")
_RECORDS = pa.schema([pa.field("task", pa.int32(), nullable=False), pa.field("record", pa.binary(), nullable=False)])


class ConnectRows:
    """The records of the tasks of one job. Partition i holds record i, so Spark's "Task i" is task i.

    `hear` gets each answer when it arrives: those of the first tasks before the others have ended.
    """

    def __init__(self, session: SparkSession, records: Sequence[bytes], hear: Callable[[bytes], None]) -> None:
        self._session = session
        self._records = records
        self._hear = hear

    def collect(self, function: TaskFunction) -> list[bytes]:
        count = len(self._records)
        records = [pickle.dumps([record]) for record in self._records]
        table = pa.table([pa.array(range(count), pa.int32()), pa.array(records, pa.binary())], schema=_RECORDS)
        dataframe: Any = self._session.createDataFrame(table)
        work = functools.partial(run_records, function)
        found = []
        for answer in read_answers(dataframe.repartitionById(count, "task").mapInArrow(work, ANSWER)):
            self._hear(answer)
            found.append(answer)
        return found


def run_records(function: TaskFunction, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: run the task whose record comes in."""
    records = (record for batch in batches for record in batch.column(1).to_pylist())
    for answer in function(records):
        yield answer_batch(answer)


def answer_batch(answer: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"answer": pa.array([answer], pa.binary())})


def read_answers(dataframe: DataFrame) -> Iterator[bytes]:
    """Run a job and give its answers, in the order of its partitions, while it runs."""
    for row in dataframe.toLocalIterator():
        yield bytes(row[0])


def ask_tasks(session: SparkSession, tasks: int, function: Callable[[Iterable[int]], Iterator[T]]) -> Sequence[T]:
    """Run a function of numbers in this many tasks at once, and return everything that it gives."""
    dataframe: Any = session.range(0, tasks, 1, tasks).mapInArrow(_with_pickled_answers(function), ANSWER)
    return [pickle.loads(answer) for answer in read_answers(dataframe)]


def _with_pickled_answers(
    function: Callable[[Iterable[int]], Iterator[T]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`. It may run where sparkfusion is not installed: because it is local to another
    function and uses nothing of this module, it is pickled with its code."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pickle

        import pyarrow

        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        for answer in function(numbers):
            made = pyarrow.array([pickle.dumps(answer)], pyarrow.binary())
            yield pyarrow.RecordBatch.from_pydict({"answer": made})

    return run
