"""Spark clusters as targets of the command line, which starts the Spark session itself."""

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
def open_target(target: str | None) -> Iterator[object]:
    """The argument of `sparkfusion.connect` for a target. For a Spark master it is a Spark session, which is stopped at
    the end of the `with`; otherwise it is the target itself."""
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
