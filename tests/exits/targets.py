"""What the sessions of the programs run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.worker_processes import WorkerProcess, url_of

TARGETS = ("local", "flight", "spark")


@contextmanager
def serve(target: str, directory: Path) -> Iterator[None]:
    """Tell the programs to run on this: nothing but themselves, one worker for all, or a Spark session of each."""
    if target != "flight":
        os.environ["EXITS_TARGET"] = target
        yield
        return
    worker = WorkerProcess(directory, "--slots", "4", "--trust-python")
    os.environ["EXITS_TARGET"] = url_of([worker])
    owner = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == owner:  # a program that was forked off passes here too
            worker.stop()
