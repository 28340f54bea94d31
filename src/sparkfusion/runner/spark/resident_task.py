"""A resident worker: what the long Spark task runs inside an executor. It is pickled by reference.

The worker is the one of `sparkfusion worker`: it listens, runs tasks in child processes, and keeps their frames. The
child processes end with this process, however it ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sparkfusion.config import available_cores, fair_share
from sparkfusion.errors import ExternalError
from sparkfusion.exchange.owned import DIRECTORY_PREFIX
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.runner.spark.driver_calls.register_call import RegisterAddress, RegisterCall
from sparkfusion.runner.spark.driver_calls.registry import LEAVE
from sparkfusion.transport.flight.flight_worker import Listen, RunningWorker
from sparkfusion.transport.process.children import Children
from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.server.worker_options import WorkerOptions

_LOOK_SECONDS = 0.5
_SIGNALS = (signal.SIGHUP, signal.SIGTERM)


@dataclass(frozen=True)
class ResidentSpec:
    """What every task of the long job gets.

    Attributes:
        launch: the number of the job among those of the session.
        token: of the workers; only the session has it.
        slots: how many tasks each worker runs at once; 0 for one on each core of its machine.
        task_memory: of one task, unless its own order says more; 0 for a share of the machine.
    """

    launch: int
    register: RegisterAddress
    token: str = field(repr=False)
    slots: int = 0
    task_memory: int = 0


def serve_resident(spec: ResidentSpec, numbers: Iterable[int]) -> Iterator[int]:
    """Serve task orders of the session's driver until it ends the worker. Raises if the driver is gone, so that Spark
    starts the task again where the loss was only a broken connection."""
    (number,) = numbers
    ended = threading.Event()
    with _die_on_signals():
        worker = _start_worker(spec)
        try:
            call = RegisterCall(spec.register, worker.address, local_directories(), spec.launch, number, ended)
        except BaseException:
            worker.close()
            raise
        with call:  # the driver counts on it: when the call has ended, so has the worker
            try:
                while call.answer != LEAVE and not ended.wait(_LOOK_SECONDS):
                    pass
            finally:
                worker.close()
        if call.answer != LEAVE and not call.told:
            raise ExternalError("the driver of the resident worker is gone")
    return iter(())


def local_directories() -> str:
    """The directories that Spark made for this executor alone. They identify it, also if several run on one machine."""
    return os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir())


def _start_worker(spec: ResidentSpec) -> RunningWorker:
    """A worker in this process. Several executors may share the machine's memory, so tasks get the share of a core."""
    slots = spec.slots or available_cores()
    options = WorkerOptions(
        slots=slots,
        directory=local_directories().split(",")[0],
        guard=Guard(trust_python=True),  # as for the closures that Spark runs here
        task_memory=spec.task_memory or fair_share(max(slots, available_cores())),
        children=Children(slots),
    )
    return RunningWorker(Listen(spec.register.own_host(), 0, spec.token, insecure=True), options)


@contextmanager
def _die_on_signals() -> Iterator[None]:
    """Spark's daemon signals its workers when the executor is gone. The handler takes no lock: the thread that it
    interrupts may hold it."""
    before = {number: signal.signal(number, lambda *_: _die()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _die() -> None:
    """End this process at once, as the executor did, without its files: nobody else removes those in memory.

    A worker that ends politely still answers for a while. Coordinators would send it tasks again, until they give up.
    """
    for base in (*map(Path, local_directories().split(",")[:1]), SHARED_MEMORY):
        for own in base.glob(f"{DIRECTORY_PREFIX}{os.getpid()}-*"):
            shutil.rmtree(own, ignore_errors=True)
    os._exit(1)
