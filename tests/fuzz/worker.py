"""A worker for changed orders: strict, with one slot, its tasks in a child process."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from sparkfusion.errors import SparkfusionError, TaskCrashError
from sparkfusion.transport.process.children import Children
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.version import WorkerStatus
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.task import TaskOrder
from tests.in_process_workers import start_worker, stop_worker
from tests.leaks import TASK_PROCESS

PATIENCE = 60.0
"""Seconds for one order, which takes milliseconds, and for the start of a process. One that needs more has hung."""

HUNG = "hung"
IDLE = WorkerStatus(0, 0, 0, 0)


class Trial:
    """Runs orders one after another. A slot that one of them kept would let the next one hang."""

    def __init__(self, service: WorkerService, directory: Path) -> None:
        self._service = service
        self._directory = directory

    def answer(self, order: TaskOrder) -> str:
        """How the worker answers: that it ran the task, or the name of its error, with how a process ended."""
        query = order.key.query
        self._service.hold(query, "secret")
        cancel = CancelToken()
        late = threading.Timer(PATIENCE, cancel.cancel)
        late.start()
        try:
            self._service.run(order, TaskEnds(lambda batch: None), cancel)
        except TaskCrashError as error:
            return f"TaskCrashError, {error.message}"
        except SparkfusionError as error:
            return HUNG if cancel.cancelled else type(error).__name__
        finally:
            late.cancel()
            late.join()
            self._service.release(query)
        return "ran"

    def left(self) -> list[str]:
        """What should not be there between two orders: work, files, more processes than the one that is kept warm."""
        processes = [each for each in map(_describe, psutil.Process().children()) if TASK_PROCESS in each]
        status = self._service.status()
        return [
            *([str(status)] if status != IDLE else []),
            *(processes if len(processes) > 1 else []),
            *map(str, self._directory.iterdir()),
        ]


def _describe(process: psutil.Process) -> str:
    return f"{process.pid} ({process.status()}): {' '.join(process.cmdline()) or TASK_PROCESS}"


@contextmanager
def trial() -> Iterator[Trial]:
    """A worker and the directory that it writes to; afterwards both are gone, with the worker's processes."""
    children = Children(1)
    with tempfile.TemporaryDirectory() as directory:
        address, service = start_worker(WorkerOptions(1, directory, children=children), rewrites=[])
        try:
            yield Trial(service, Path(directory))
        finally:
            stop_worker(address)
            children.close()
