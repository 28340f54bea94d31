"""Spark's data path as far as we use it: RDDs of byte strings, which Spark shuffles, fetches and recomputes for us.

PySpark's own `RDD.partitionBy` uses the same JVM classes, but collects hundreds of values before it passes them on; our
values are megabytes. So the few JVM calls are made here, and nowhere else. A call costs 0.2 to 1 ms. The usual shapes
of a stage need only a handful of calls, whatever the number of tasks.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession

from sparkfusion.runner.spark.master import is_local
from sparkfusion.runner.spark.spark_task import TaskFunction

JavaRows = Any
"""A JavaRDD of byte arrays."""

_WORD = 64
_MOST_ANYWHERE = 256
"""With more tasks, the product of `run_anywhere` would have too many partitions."""


@dataclass(frozen=True)
class Shuffled:
    """Rows after a shuffle. Spark computes its map side once, when a partition is first read, and again if it is lost.

    `pairs` is the JVM object that still knows its partitioning, `rows` the plain RDD.
    """

    pairs: Any
    rows: JavaRows
    partitions: int
    shuffle_id: int


@dataclass(frozen=True)
class RddPartitions:
    """Partitions that a task reads: of a shuffle, or of any rows."""

    source: Shuffled | JavaRows
    partitions: tuple[int, ...]

    @property
    def rows(self) -> JavaRows:
        return self.source.rows if isinstance(self.source, Shuffled) else self.source


class RowPlan:
    """Which rows each task of a job reads: its own record, and pieces of the output of other jobs."""

    def __init__(
        self,
        spark: SparkContext,
        records: Sequence[bytes],
        pieces: Sequence[Sequence[RddPartitions]],
        profile: Any | None = None,
    ) -> None:
        """`profile`: the resources that its tasks ask Spark for; None for the usual ones."""
        self._spark = spark
        self._records = records
        self._pieces = pieces
        self._profile = profile

    def run(self, function: TaskFunction) -> JavaRows:
        """Apply a Python function to the rows that each task reads, in no particular order, and return its rows."""
        made = self._apply(function)
        return made if self._profile is None else made.withResources(self._profile)

    def _apply(self, function: TaskFunction) -> JavaRows:
        if not any(self._pieces):
            return _python(self._spark, self._own_records(), function)
        shuffles = all(isinstance(piece.source, Shuffled) for each in self._pieces for piece in each)
        if not shuffles or not all(self._pieces):
            return _python(self._spark, self._each_its_own(), function)
        rows, tasks = self._shuffled_rows()
        inline = [pickle.dumps([self._records[task]]) for task in tasks]
        return _python(self._spark, run_anywhere(self._spark, rows, len(tasks)), function, inline)

    def collect(self, function: TaskFunction) -> list[bytes]:
        return collect(self._spark, self.run(function))

    def rows(self) -> JavaRows:
        """The rows that each task reads, including its record, as single rows.

        Marked rows are pairs in the JVM; only a Python worker separates them.
        """
        if not any(self._pieces):
            return self._own_records()
        rows = self._each_its_own()
        pairs = any(not isinstance(piece.source, Shuffled) for each in self._pieces for piece in each)
        return _python(self._spark, rows, iter) if pairs else rows

    def _own_records(self) -> JavaRows:
        """An RDD whose partition i holds record i, pickled inside a list as PySpark does it."""
        return self._spark.parallelize(self._records, len(self._records))._jrdd

    def _shuffled_rows(self) -> tuple[JavaRows, list[int]]:
        """What tasks read of shuffles, and the tasks: a partition for each in this order, or one for all of them."""
        tasks = list(range(len(self._records)))
        if all(each == self._pieces[0] for each in self._pieces):
            return self._coalesce(self._pieces[0]), tasks
        partitions = _shared_partitions(self._pieces)
        if partitions is None:
            return _union([self._coalesce(each) for each in self._pieces]), tasks
        return self._side_by_side(sorted(partitions)), sorted(tasks, key=lambda task: partitions[task])

    def _coalesce(self, pieces: Sequence[RddPartitions]) -> JavaRows:
        """The rows of these pieces as one partition."""
        return _union([_only(self._spark, piece.rows, piece.partitions) for piece in pieces]).coalesce(1)

    def _side_by_side(self, partitions: list[int]) -> JavaRows:
        """Task i reads partition p(i) of every shuffle: Spark itself combines equally partitioned inputs."""
        first, *others = (piece.source for piece in self._pieces[0])
        pairs = functools.reduce(lambda left, right: left.union(right.pairs), others, first.pairs)
        return _only(self._spark, _values(self._spark, pairs), tuple(partitions))

    def _each_its_own(self) -> JavaRows:
        own = self._own_records()
        tasks = []
        for index, pieces in enumerate(self._pieces):
            parts = [_only(self._spark, own, (index,))]
            parts += [_only(self._spark, piece.rows, piece.partitions) for piece in pieces]
            tasks.append(_union(parts).coalesce(1))
        return _union(tasks)


def _shared_partitions(pieces: Sequence[Sequence[RddPartitions]]) -> list[int] | None:
    """The one partition that each task reads of the same shuffles; None if tasks read anything else."""
    sources = [piece.source for piece in pieces[0]]
    if not all(isinstance(source, Shuffled) and source.partitions == sources[0].partitions for source in sources):
        return None
    found = []
    for each in pieces:
        wanted = {piece.partitions for piece in each}
        if [piece.source for piece in each] != sources or len(wanted) != 1 or len(each[0].partitions) != 1:
            return None
        found.append(each[0].partitions[0])
    return found if len(set(found)) == len(found) else None


def run_anywhere(spark: SparkContext, rows: JavaRows, tasks: int) -> JavaRows:
    """The same rows, for tasks that any executor may run at once. If there is one partition, every task reads it.

    Spark prefers the executor that holds a task's rows. Tasks that read the same broadcast all prefer the same one, and
    so may all tasks of a join. Spark waits `spark.locality.wait` (3 s) before it uses another one. So the rows are
    combined with an empty one that every host is good for; the Python side drops it.
    """
    shared = rows.getNumPartitions() == 1
    if not shared and (is_local(spark) or tasks > _MOST_ANYWHERE):
        return rows
    combined = _product(spark, _empty_rows(spark, tasks, hosts_of(spark)), rows)
    # of the others, task i reads partition i
    return combined if shared else _only(spark, combined, tuple(range(0, tasks * tasks, tasks + 1)))


def hosts_of(spark: SparkContext) -> list[str]:
    """The hosts of the driver and of all executors."""
    addresses = str(spark._jsc.sc().getExecutorMemoryStatus().keys().mkString(" "))
    return sorted({address.rpartition(":")[0] for address in addresses.split()})


def _empty_rows(spark: SparkContext, count: int, hosts: Sequence[str]) -> JavaRows:
    """Partitions of one empty row each, which prefer all these hosts alike."""
    jvm: Any = spark._jvm
    to_seq = _class(spark, "org.apache.spark.api.python.PythonUtils").toSeq
    row = jvm.scala.Tuple2(b"", to_seq(list(hosts)))
    rows = to_seq(jvm.java.util.Collections.nCopies(count, row))
    tag = _class(spark, "scala.reflect.ClassTag").apply(jvm.java.lang.Class.forName("[B"))
    return spark._jsc.sc().makeRDD(rows, tag).toJavaRDD()


def mark_rows(spark: SparkContext, mark: bytes, rows: JavaRows) -> JavaRows:
    """The same rows, each after a record (pickled inside a list) that says what it is."""
    return _product(spark, spark.parallelize([mark], 1)._jrdd, rows)


def shuffle(spark: SparkContext, keyed: JavaRows, partitions: int) -> Shuffled:
    """Send rows to partitions. `keyed` alternates between `key(partition)` and the row itself."""
    jvm: Any = spark._jvm
    pairs = jvm.PairwiseRDD(keyed.rdd()).asJavaPairRDD().partitionBy(jvm.PythonPartitioner(partitions, 0))
    shuffle_id = int(pairs.rdd().dependencies().head().shuffleId())
    return Shuffled(pairs, _values(spark, pairs), partitions, shuffle_id)


def collect(spark: SparkContext, rows: JavaRows, partition: int | None = None) -> list[bytes]:
    """Run a job and return its rows; if a partition is given, only of that one. This needs no Python worker."""
    if partition is not None:
        rows = _only(spark, rows, (partition,))
    return RDD(rows, spark, NoOpSerializer()).collect()


def as_dataset(session: SparkSession, rows: JavaRows) -> DataFrame:
    """The rows as a DataFrame of one binary column, with the same partitions."""
    java: Any = session._jsparkSession
    encoders = _class(session.sparkContext, "org.apache.spark.sql.Encoders")
    return DataFrame(java.createDataset(rows.rdd(), encoders.BINARY()).toDF(), session)


def limit_partitions(dataframe: DataFrame, rows: int) -> DataFrame:
    """At most this many rows of every partition. Spark's own `limit` would move all rows to one partition."""
    session = dataframe.sparkSession
    local: Any = dataframe._jdf.limit(rows).queryExecution().logical().child()
    datasets = _class(session.sparkContext, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(session._jsparkSession, local), session)


def forget(spark: SparkContext, shuffled: Shuffled) -> None:
    """Remove a shuffle's files from all executors now; Spark itself does it only when the JVM next collects garbage."""
    cleaner: Any = spark._jsc.sc().cleaner()
    if cleaner.isDefined():
        cleaner.get().doCleanupShuffle(shuffled.shuffle_id, False)


def _python(spark: SparkContext, rows: JavaRows, function: TaskFunction, inline: Sequence[bytes] = ()) -> JavaRows:
    work = functools.partial(_run_with_record, function, tuple(inline))
    made = RDD(rows, spark, NoOpSerializer()).mapPartitionsWithIndex(work)
    made._bypass_serializer = True  # type: ignore[attr-defined]
    return made._jrdd


def _run_with_record(
    function: TaskFunction, inline: tuple[bytes, ...], index: int, rows: Iterable[bytes]
) -> Iterator[bytes]:
    """On the executor: a task's record comes with its rows, or inside the closure. `run_anywhere` adds empty rows."""
    return function(itertools.chain((inline[index],), filter(None, rows)) if inline else rows)


def _product(spark: SparkContext, left: JavaRows, right: JavaRows) -> JavaRows:
    """Each row of the first, followed by a row of the second; a Python worker gets the two one after the other."""
    product = left.cartesian(right)
    java: Any = _class(spark, "org.apache.spark.api.java.JavaRDD")
    return java.fromRDD(product.rdd(), product.classTag())


def _values(spark: SparkContext, pairs: Any) -> JavaRows:
    jvm: Any = spark._jvm
    return jvm.PythonRDD.valueOfPair(pairs)


def _only(spark: SparkContext, rows: JavaRows, partitions: tuple[int, ...]) -> JavaRows:
    """A Scala set of integers is the predicate that Spark's pruning asks for."""
    pruning = _class(spark, "org.apache.spark.rdd.PartitionPruningRDD")
    return pruning.create(rows.rdd(), _scala_set(spark, partitions)).toJavaRDD()


@functools.lru_cache(maxsize=16)
def _class(spark: SparkContext, name: str) -> Any:
    """A class of the JVM, cached: finding one takes a call for each part of its name."""
    found: Any = spark._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


@functools.lru_cache(maxsize=1024)
def _scala_set(spark: SparkContext, numbers: tuple[int, ...]) -> Any:
    words = [0] * (max(numbers, default=0) // _WORD + 1)
    for number in numbers:
        words[number // _WORD] |= 1 << (number % _WORD)
    gateway: Any = spark._gateway
    mask = gateway.new_array(gateway.jvm.long, len(words))
    for index, word in enumerate(words):
        mask[index] = word - (1 << _WORD) if word >= 1 << (_WORD - 1) else word  # Java's longs have a sign
    return _class(spark, "scala.collection.immutable.BitSet$.MODULE$").fromBitMaskNoCopy(mask)


def _union(parts: Sequence[JavaRows]) -> JavaRows:
    """A balanced tree of unions: a chain would be as deep as it is long, and Spark walks it recursively."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return _union(parts[:middle]).union(_union(parts[middle:]))
