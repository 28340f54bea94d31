"""A query that lacks memory in one task runs again, split, as long as its consumer has no row."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from sparkfusion.errors import QueryCancelledError, ResourceError, UserError
from sparkfusion.plan.stage import Head
from sparkfusion.runner.base import RunningJob
from sparkfusion.session.whole_job import SPLIT_HINT, WholeJob

Step = list[int] | BaseException
SHORTAGE = "Resources exhausted: Failed to allocate 8 MB"


class FakeJob:
    """Gives frames of these numbers, or raises."""

    def __init__(self, *steps: Step) -> None:
        self._steps: Iterator[Step] = iter(steps)
        self.cancelled: str | None = None
        self.closed = False
        self.asked = False

    def next_frame(self) -> pa.RecordBatch | None:
        if self.cancelled is not None:
            raise QueryCancelledError(self.cancelled)
        step = next(self._steps, None)
        if isinstance(step, BaseException):
            raise step
        return None if step is None else pa.record_batch({"v": pa.array(step, pa.int64())})

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self.cancelled = reason

    def close(self) -> None:
        self.closed = True

    def reports(self) -> list[object]:
        self.asked = True
        return []

    def graph(self) -> None:
        return None

    def feeds(self) -> list[object]:
        return []


def whole_job(first: FakeJob, second: FakeJob, head: Head | None = None) -> WholeJob:
    def start_split(error: ResourceError) -> tuple[RunningJob, Head]:
        assert first.closed
        return second, head or Head((1,))  # type: ignore[return-value]

    return WholeJob(first, start_split)  # type: ignore[arg-type]


def numbers(job: WholeJob) -> list[int]:
    found: list[int] = []
    while (frame := job.next_frame()) is not None:
        found += frame.column("v").to_pylist()
    return found


def test_the_rows_of_the_first_run_are_enough() -> None:
    first, second = FakeJob([1], [], [2]), FakeJob([3])
    job = whole_job(first, second)
    assert numbers(job) == [1, 2]
    job.close()
    assert (first.closed, second.closed) == (True, False)


@pytest.mark.parametrize("before", [(), ([],)], ids=["at once", "after a frame without rows"])
def test_a_run_without_rows_is_replaced(before: tuple[Step, ...]) -> None:
    first, second = FakeJob(*before, ResourceError(SHORTAGE)), FakeJob([1], [2])
    job = whole_job(first, second)
    assert numbers(job) == [1, 2]
    job.reports()
    assert second.asked
    assert not first.asked
    job.close()
    assert second.closed


def test_the_second_run_has_a_window_of_its_own() -> None:
    job = whole_job(FakeJob(ResourceError(SHORTAGE)), FakeJob([1, 2], [3, 4], [5]), Head((1,), skip=1, fetch=2))
    assert numbers(job) == [2, 3]


def test_rows_that_the_consumer_has_cannot_be_taken_back() -> None:
    job = whole_job(FakeJob([1], ResourceError(SHORTAGE)), FakeJob([1]))
    assert job.next_frame() is not None
    with pytest.raises(ResourceError) as caught:
        job.next_frame()
    assert caught.value.hint == SPLIT_HINT


@pytest.mark.parametrize("error", [ResourceError("No space left on device"), UserError("division by zero")])
def test_other_errors_end_the_query(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        whole_job(FakeJob(error), FakeJob([1])).next_frame()


def test_a_second_shortage_ends_the_query() -> None:
    job = whole_job(FakeJob(ResourceError(SHORTAGE)), FakeJob(ResourceError(f"{SHORTAGE} again")))
    with pytest.raises(ResourceError, match="again"):
        job.next_frame()


def test_a_cancel_before_the_second_run_prevents_it() -> None:
    job = whole_job(FakeJob(ResourceError(SHORTAGE)), FakeJob([1]))
    job.close()
    with pytest.raises(QueryCancelledError, match="closed"):
        job.next_frame()


@pytest.mark.parametrize("stop", [WholeJob.cancel, WholeJob.close], ids=["cancel", "close"])
def test_a_cancel_while_the_second_run_is_planned_reaches_it(stop: object) -> None:
    assert callable(stop)
    first, second = FakeJob(ResourceError(SHORTAGE)), FakeJob([1])
    planning, go_on = threading.Event(), threading.Event()

    def start_split(error: ResourceError) -> tuple[RunningJob, Head]:
        planning.set()
        assert go_on.wait(10)
        return second, Head((1,))  # type: ignore[return-value]

    job = WholeJob(first, start_split)  # type: ignore[arg-type]

    def stop_it() -> None:
        assert planning.wait(10)
        stop(job)
        go_on.set()

    thread = threading.Thread(target=stop_it)
    thread.start()
    with pytest.raises(QueryCancelledError):
        job.next_frame()
    thread.join()
    job.close()
    assert second.closed
