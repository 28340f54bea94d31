"""Rows of grants reach the reader once, whole, whatever happens to the attempts that made them."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion.exchange import delivery
from sparkfusion.exchange.channel import Channel
from sparkfusion.exchange.delivery import Delivery, FrameBuffer, GrantSink
from sparkfusion.ids import TaskKey

KEY = TaskKey("q", 1, 0)


def frame(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def drained(channel: Channel) -> list[int]:
    channel.finish()
    found: list[int] = []
    while (batch := channel.get()) is not None:
        found += batch.column(0).to_pylist()
    return found


def test_a_grant_that_the_reader_has_is_not_given_again() -> None:
    channel = Channel(8)
    deliveries = Delivery(channel)
    deliveries.deliver(0, 0, [frame(1), frame(2)])
    deliveries.deliver(0, 0, [frame(1), frame(2)])
    deliveries.deliver(1, 0, [frame(3)])
    assert (deliveries.first(0), deliveries.first(1), deliveries.first(2)) == (1, 1, 0)
    assert drained(channel) == [1, 2, 3]


def test_two_attempts_at_once_deliver_a_grant_once() -> None:
    channel = Channel(1)
    deliveries = Delivery(channel)
    attempts = [threading.Thread(target=deliveries.deliver, args=(0, 0, [frame(1), frame(2)])) for _ in range(2)]
    for attempt in attempts:
        attempt.start()
    first, second = channel.get(), channel.get()
    assert first is not None
    assert second is not None
    for attempt in attempts:
        attempt.join(60)
    assert not any(attempt.is_alive() for attempt in attempts)
    assert drained(channel) == []


def test_rows_wait_for_the_whole_grant() -> None:
    given: list[tuple[int, list[int]]] = []
    sink = GrantSink(KEY, "", lambda offset, frames: given.append((offset, [f.column(0)[0].as_py() for f in frames])))
    sink.write(0, frame(1))
    sink.write(0, frame(2))
    assert given == []
    sink.commit(4)
    sink.commit(5)
    assert given == [(4, [1, 2])], "a grant without rows is not delivered"


def test_rows_of_an_aborted_grant_are_gone() -> None:
    given: list[int] = []
    sink = GrantSink(KEY, "", lambda offset, frames: given.extend(f.num_rows for f in frames))
    sink.write(0, frame(1))
    sink.abort()
    assert given == []


def test_many_rows_go_to_a_file_and_come_back_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_IN_MEMORY_BYTES", 100)
    buffer = FrameBuffer(str(tmp_path))
    for start in range(0, 100, 5):
        buffer.add(frame(*range(start, start + 5)))
    assert len(list(tmp_path.iterdir())) == 1
    assert [v for batch in buffer.frames() for v in batch.column(0).to_pylist()] == list(range(100))
    assert list(tmp_path.iterdir()) == []
    assert list(buffer.frames()) == []


def test_a_buffer_that_is_cleared_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_IN_MEMORY_BYTES", 1)
    buffer = FrameBuffer(str(tmp_path))
    buffer.add(frame(1))
    buffer.clear()
    assert list(tmp_path.iterdir()) == []
    assert list(buffer.frames()) == []
