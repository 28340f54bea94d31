"""News of finished tasks while their Spark job still runs: for progress, early errors, and rows before the job's end.

A job returns its results when its last task is done. Updates of an accumulator reach the driver with each task. They
are only news: what the job returns is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam, _accumulatorRegistry

from sparkfusion.runner.spark.spark_task import SparkAnswer, answer_of

Hear = Callable[[SparkAnswer], None]


class TaskNews:
    """One query's news. `hear` is called on Spark's own thread, and Spark waits for it, so it must return at once."""

    def __init__(self, spark: SparkContext, hear: Hear) -> None:
        self.sender: Accumulator[tuple[bytes, ...]] = spark.accumulator((), _Listening(hear))

    def close(self) -> None:
        """Remove the accumulator: PySpark keeps every accumulator as long as the process lives."""
        _accumulatorRegistry.pop(self.sender.aid, None)


class _Listening(AccumulatorParam[Any]):
    """Collects messages on the executor; on the driver it passes them on. Pickling makes it the executor's kind."""

    def __init__(self, hear: Hear | None = None) -> None:
        self._hear = hear

    def __reduce__(self) -> tuple[object, ...]:
        return _Listening, ()

    def zero(self, value: Any) -> Any:
        return ()

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        if self._hear is None:
            return (*value1, *value2)
        for answer in value2:
            self._hear(answer_of(answer))
        return ()
