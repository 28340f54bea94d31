"""Clusters of Spark as targets of the command line: it starts the Spark session that a program would bring along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_SPARK_MASTERS = ("spark://", "k8s://", "sc://", "local[", "local-cluster[")


def is_spark_master(target: str) -> bool:
    """Whether this is what Spark calls a master, or a server of Spark Connect.

    >>> is_spark_master("spark://host:7077"), is_spark_master("flight://host:7070")
    (True, False)
    """
    return target == "yarn" or target.startswith(_SPARK_MASTERS)


@contextmanager
def started(target: str | None) -> Iterator[object]:
    """What `sparkfusion.connect` takes for a target: for a master of Spark, a session there that lasts as long as the
    `with`; otherwise the target as it is."""
    if target is None or not is_spark_master(target):
        yield target
        return
    from sparkfusion.runner.targets import require_spark

    require_spark()
    from sparkfusion.runner.spark.launch import session_at

    session = session_at(target)
    try:
        yield session
    finally:
        session.stop()
