"""Another attempt at a task continues after the rows that the consumer has, if it begins with them."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from sparkfusion.exchange.frames import frames_of, write_options
from sparkfusion.runner.passed import AttemptRows, OtherRowsError, PassedRows

PATIENCE = 30.0


def frame(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, pa.int64())})


def words(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values).dictionary_encode()})


class Consumer:
    """Of frames that come as bytes, or not."""

    def __init__(self, *, as_bytes: bool = True) -> None:
        self.rows: list[object] = []
        self.passed = PassedRows(self._put)
        self._as_bytes = as_bytes

    def _put(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.column("x").to_pylist()

    def attempt(self, *frames: pa.RecordBatch) -> AttemptRows:
        rows = self.passed.attempt()
        for each in frames:
            for data in frames_of(each, write_options("lz4")) if self._as_bytes else ():
                rows.read(memoryview(data))
            rows(each)
        return rows


def test_what_the_consumer_has_is_not_given_again() -> None:
    consumer = Consumer()
    consumer.attempt(frame(1, 2), frame(3))
    consumer.attempt(frame(1, 2), frame(3), frame(4)).finish()
    assert consumer.rows == [1, 2, 3, 4]


def test_a_frame_that_waits_for_the_consumer_is_not_given_by_another_attempt_too() -> None:
    arrived, room = threading.Event(), threading.Event()
    got: list[object] = []

    def put(batch: pa.RecordBatch) -> None:
        arrived.set()
        assert room.wait(PATIENCE)
        got.extend(batch.column("x").to_pylist())

    passed = PassedRows(put)
    slow = threading.Thread(target=lambda: passed.attempt()(frame(1)))
    slow.start()
    assert arrived.wait(PATIENCE)
    assert passed.started, "its worker may be silent now, but no other attempt may start from the beginning"
    other = threading.Thread(target=lambda: passed.attempt()(frame(1)))
    other.start()
    room.set()
    for thread in (slow, other):
        thread.join(PATIENCE)
    assert got == [1]


def test_a_frame_that_the_consumer_did_not_take_can_be_given_again() -> None:
    class RefusedFrameError(Exception):
        pass

    def refuse(batch: pa.RecordBatch) -> None:
        raise RefusedFrameError

    passed = PassedRows(refuse)
    with pytest.raises(RefusedFrameError):
        passed.attempt()(frame(1))
    assert not passed.started


def test_an_attempt_that_fails_early_changes_nothing() -> None:
    consumer = Consumer()
    consumer.attempt(frame(1), frame(2), frame(3))
    consumer.attempt(frame(1))
    consumer.attempt(frame(1), frame(2), frame(3), frame(4), frame(5)).finish()
    assert consumer.rows == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "second",
    [[frame(2, 1), frame(3)], [frame(1), frame(2, 3)], [frame(1, 2), frame(None)], [frame(1, 2), frame(4)]],
    ids=["another order", "other frames", "a null", "another value"],
)
def test_an_attempt_that_begins_otherwise_ends_the_query(second: list[pa.RecordBatch]) -> None:
    consumer = Consumer()
    consumer.attempt(frame(1, 2), frame(3))
    with pytest.raises(OtherRowsError):
        consumer.attempt(*second)
    assert consumer.rows == [1, 2, 3]


def test_an_attempt_that_is_shorter_ends_the_query() -> None:
    consumer = Consumer()
    consumer.attempt(frame(1), frame(2))
    with pytest.raises(OtherRowsError):
        consumer.attempt(frame(1)).finish()


def test_the_same_places_in_another_dictionary_are_other_rows() -> None:
    consumer = Consumer()
    consumer.attempt(words("a", "b"))
    with pytest.raises(OtherRowsError):
        consumer.attempt(words("a", "c"))


def test_a_part_of_a_larger_frame_is_the_same_as_a_frame_of_its_own() -> None:
    consumer = Consumer()
    consumer.attempt(frame(1, 2, 3).slice(1, 2))
    consumer.attempt(frame(2, 3), frame(4)).finish()
    assert consumer.rows == [2, 3, 4]


@pytest.mark.parametrize("as_bytes", [True, False])
def test_only_frames_that_came_as_bytes_can_be_compared(as_bytes: bool) -> None:
    consumer = Consumer(as_bytes=as_bytes)
    assert not consumer.passed.final, "the consumer has nothing yet"
    consumer.attempt(frame(1))
    assert consumer.passed.final is not as_bytes
