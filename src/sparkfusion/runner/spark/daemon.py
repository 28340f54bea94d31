"""Spark's Python daemon, which imports what tasks need before it forks a worker.

Set `spark.python.daemon.module` to the name of this module. A worker then starts in about 10 ms. Without it, each new
worker imports DataFusion, Arrow and sparkfusion itself, which takes up to a second of CPU. Spark starts new workers
more often than one expects: it ends workers that are idle for a minute, and those of cancelled tasks.

Forking is safe because importing DataFusion does not start its runtime: a worker starts its own with its first task. If
an import fails here, it fails again in the worker, and there the task reports it.
"""

from __future__ import annotations

import gc
from contextlib import suppress

from pyspark.daemon import manager

with suppress(ImportError):
    import sparkfusion.runner.spark.body
    import sparkfusion.transport.process.children  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # workers share these objects with the daemon; a collection in a worker would copy their pages
    manager()
