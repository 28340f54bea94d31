"""One child process as the worker sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import NoReturn

from sparkfusion.config.machine_limits import PROCESSES, resident_bytes
from sparkfusion.errors import ExternalError, QueryCancelledError, TaskCrashError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.caller_side import CallerSide
from sparkfusion.transport.message import pack, unpack
from sparkfusion.transport.process.lifetime import describe_end, start_process
from sparkfusion.transport.process.pipe import Pipe
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskReport

GRACE_SECONDS = 2.0
_START_SECONDS = 120.0
_TURN_SECONDS = 0.1
_SEND_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_MOST_TASKS = 1000
_MOST_BYTES = 1024 * 1024 * 1024


class SupervisedChild:
    """Runs one task at a time, for the thread that has it. The thread that makes it must live as long as the child, see
    `lifetime`.

    A cancelled task that does not end within the grace period is ended by ending the process.
    """

    def __init__(self) -> None:
        self._process, end = start_process()
        self._pipe = Pipe(end)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._started = False
        self._tasks = 0

    def wait_until_started(self, cancel: CancelToken) -> None:
        """Wait until the child can take a task, or until that task is cancelled; the child then goes on starting."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._started and not cancel.cancelled:
            if self._pipe.is_readable(_TURN_SECONDS):
                self._hear_start()
            elif time.monotonic() > deadline:
                self._fail_to_start()

    def _hear_start(self) -> None:
        try:
            self._pipe.receive()
        except EOFError:
            self._fail_to_start()
        self._started = True

    def _fail_to_start(self) -> NoReturn:
        self.stop()
        raise ExternalError(
            f"a process for tasks did not start: it {describe_end(self._process.returncode)}",
            hint="see the worker's log; --no-task-processes runs tasks in the worker itself",
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def takes_tasks(self) -> bool:
        """Whether it is alive and not about to end. In a killed process the first thread ends before the last one, and
        only then can the process be waited for."""
        return self.alive and not _is_ending(self._process)

    @property
    def worn(self) -> bool:
        """Whether a new process should replace it: it ran many tasks, or has not returned its memory."""
        return self._tasks >= _MOST_TASKS or self.resident_bytes > _MOST_BYTES

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self._process.pid)

    def run(self, key: TaskKey, order: bytes, ends: TaskEnds, cancel: CancelToken, limit: int) -> TaskReport:
        """Run a task to its end. Afterwards the child is ready for another, or has been stopped."""
        self._tasks += 1
        answered = False
        try:
            self._pipe.send(order)
            cancel.watch(self._cancel)
            report = CallerSide(f"process {self._process.pid}", self._receive, self._pipe.send, ends, limit).serve()
            answered = True
            return report
        except (EOFError, OSError):
            self.stop()
            if cancel.cancelled:
                raise QueryCancelledError("the task was cancelled", where=key) from None
            raise _crash(self._process, key) from None
        finally:
            cancel.watch(None)
            if not answered and self.alive:
                self._await_quiet()
            self._end_grace()

    def stop(self) -> None:
        """End the process and wait for it. Idempotent; any thread may call it."""
        self._kill()
        self._process.wait()
        self._pipe.close()

    def _kill(self) -> None:
        """End the process, and processes that the user's functions started from it."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _receive(self) -> memoryview:
        """Wait for a message, and watch the process meanwhile: a process that a function started may hold the child's
        end of the pipe open."""
        while not self._pipe.is_readable(_LOOK_SECONDS):
            if not self.alive:
                raise EOFError
        return self._pipe.receive()

    def _cancel(self) -> None:
        """Ask the child to end the task, and make sure that it does. Does not wait for the child."""
        with self._lock:
            if self._timer is not None:
                return
            self._timer = threading.Timer(GRACE_SECONDS, self._kill)
            self._timer.daemon = True
            self._timer.start()
        with suppress(OSError):
            self._pipe.send(pack("cancel"), _SEND_SECONDS)

    def _await_quiet(self) -> None:
        """After a task that did not succeed: wait until it has really ended."""
        self._cancel()
        try:
            while unpack(data := self._receive(), len(data))[0] != "ready":
                pass
        except (EOFError, OSError):
            self.stop()

    def _end_grace(self) -> None:
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()


def _crash(process: subprocess.Popen[bytes], key: TaskKey) -> TaskCrashError:
    return TaskCrashError(
        f"the process that ran the task {describe_end(process.returncode)}",
        where=key,
        hint="SIGKILL often means that the machine ran out of memory; otherwise a Python function of the query, a "
        "native library that it uses, or DataFusion itself ended it: its output shows where it crashed",
    )


def _is_ending(process: subprocess.Popen[bytes]) -> bool:
    try:
        return (PROCESSES / str(process.pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
