"""Spark's Python daemon, with everything that a task needs imported before it forks its workers.

Spark throws away the worker of a task that it cancels, and tests cancel a lot: a worker that comes with its imports
starts in 10 ms, one that has to do them takes a second of processor time. Where the imports fail, the workers shall.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.daemon import manager

with suppress(ImportError):
    import sparkfusion.runner.spark.body
    import sparkfusion.transport.process.children  # noqa: F401

if __name__ == "__main__":
    manager()
