"""Resident workers register here, at the driver. Each keeps its call open for as long as it serves.

Nothing in PySpark reaches a running task from the driver, so the task calls: the end of the call tells each side that
the other one has ended.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import flight

from sparkfusion.transport.flight.calls import ServedCall
from sparkfusion.transport.message import SMALL_MESSAGE, pack

WELCOME, SPARE, LEAVE, END = "welcome", "spare", "leave", "end"
_GONE_SECONDS = 2.0  # a worker that was killed may register again before the end of its call is noticed
_TURN_SECONDS = 0.2
_LATER_SECONDS = 3.0  # that a query waits for the other workers after the first one has registered


@dataclass(eq=False)
class _Seat:
    """One task of Spark that has registered: `task` of the job `launch`, the same for every attempt at it.

    The call must not end while another thread writes to it: that crashes the process.
    """

    address: str
    executor: str
    launch: int
    task: int
    call: ServedCall
    serves: bool = True
    closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, kind: str) -> None:
        with (
            self.lock,
            suppress(flight.FlightError, pa.ArrowException, OSError),
        ):  # the task may be gone; its end is noticed elsewhere
            if not self.closed:
                self.call.send(pack(kind))

    def close(self) -> None:
        with self.lock:
            self.closed = True


class Registry:
    """The resident workers of one session, at most one in each executor. Any thread may call any method."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._seats: list[_Seat] = []
        self._expected: dict[int, set[int]] = {}
        self._unmet: set[tuple[int, int]] = set()
        self._first_at = self._none_since = time.monotonic()
        self._ended = False

    def expect(self, launch: int, tasks: int) -> None:
        """Note that a job has started this many tasks, which will register."""
        with self._changed:
            self._none_since = self._none_since if self._seats else time.monotonic()
            self._expected[launch] = set(range(tasks))
            self._unmet.update((launch, task) for task in range(tasks))

    def forget(self, launch: int) -> None:
        """Note that the job has ended: its tasks will not register any more."""
        with self._changed:
            self._expected.pop(launch, None)
            self._unmet = {each for each in self._unmet if each[0] != launch}
            self._changed.notify_all()

    def addresses(self) -> list[str]:
        """The addresses of the workers that serve now."""
        with self._changed:
            return self._serving_addresses()

    def count_tasks(self) -> int:
        """How many tasks serve, or have yet to register."""
        with self._changed:
            return sum(map(len, self._expected.values()))

    def wait_for_workers(self, seconds: float) -> None:
        """Wait until all tasks have registered, or for a while longer than the first one took.

        Returns at the latest when there has been no worker for this many seconds, and at once if one registered long
        ago.
        """
        with self._changed:
            while not self._is_ready() and time.monotonic() < self._none_since + seconds:
                self._changed.wait(_TURN_SECONDS)

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until every worker has ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._seats, seconds)

    def end(self) -> None:
        """Tell every worker to end, also those that will register later. Does not wait for them."""
        with self._changed:
            self._ended = True
            seats = list(self._seats)
            self._changed.notify_all()
        for seat in seats:
            seat.send(END)

    def serve(self, call: ServedCall) -> None:
        """Serve the call of one task until the task ends. Runs on a thread of the server."""
        fields, _ = call.expect("register", SMALL_MESSAGE)
        seat = _Seat(
            fields.text("address"), fields.text("executor"), fields.integer("launch"), fields.integer("task"), call
        )
        answer = self._admit(seat)
        if answer == LEAVE:
            seat.send(LEAVE)
            return
        try:
            seat.send(answer)
            while True:
                call.receive()
        finally:
            seat.close()
            with self._changed:
                self._seats.remove(seat)
                self._none_since = self._none_since if self._seats else time.monotonic()
                self._changed.notify_all()

    def _admit(self, seat: _Seat) -> str:
        """Whether the task serves, waits or leaves.

        A copy that Spark's speculation made of a task that serves must not leave: Spark would end the task that serves.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._is_taken(seat.executor), _GONE_SECONDS)
            answer = WELCOME
            if self._ended:
                answer = LEAVE
            elif self._is_taken(seat.executor):
                same = any((each.launch, each.task) == (seat.launch, seat.task) for each in self._seats)
                answer = SPARE if same else LEAVE
                seat.serves = False
            self._unmet.discard((seat.launch, seat.task))
            if answer == LEAVE:
                self._expected.get(seat.launch, set()).discard(seat.task)
            else:
                self._first_at = self._first_at if self._seats else time.monotonic()
                self._seats.append(seat)
            self._changed.notify_all()
            return answer

    def _is_taken(self, executor: str) -> bool:
        return any(each.executor == executor and each.serves for each in self._seats)

    def _serving_addresses(self) -> list[str]:
        return [seat.address for seat in self._seats if seat.serves]

    def _is_ready(self) -> bool:
        if self._ended or not self._expected or (self._seats and not self._unmet):
            return True
        return bool(self._seats) and time.monotonic() - self._first_at > _LATER_SECONDS
