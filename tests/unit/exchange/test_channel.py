"""The channel between running producers and one reader."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from sparkfusion.exchange.channel import Channel, ChannelClosedError

FRAME = pa.record_batch({"a": [1]})
PATIENCE = 60.0


class Producer:
    """A thread that puts frames; `blocked` is true once it stands in front of a full channel."""

    def __init__(self, channel: Channel, frames: int) -> None:
        self.put = 0
        self.error: BaseException | None = None
        self._channel = channel
        self._frames = frames
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for _ in range(self._frames):
                self._channel.put(FRAME)
                with self._progress:
                    self.put += 1
                    self._progress.notify_all()
        except ChannelClosedError as error:
            self.error = error

    def wait_until_put(self, number: int) -> None:
        with self._progress:
            assert self._progress.wait_for(lambda: self.put >= number, PATIENCE)

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def test_frames_come_out_in_order() -> None:
    channel = Channel(3)
    frames = [pa.record_batch({"a": [i]}) for i in range(3)]
    for frame in frames:
        channel.put(frame)
    channel.finish()
    assert [channel.get() for _ in range(4)] == [*frames, None]


def test_a_capacity_of_one_lets_one_frame_wait() -> None:
    channel = Channel(1)
    producer = Producer(channel, frames=3)
    producer.wait_until_put(1)
    for number in (2, 3):
        assert producer.put == number - 1  # the next one waits for the reader
        assert channel.get() == FRAME
        producer.wait_until_put(number)
    producer.join()


@pytest.mark.parametrize("end", [Channel.close, Channel.finish], ids=["close", "finish"])
def test_the_end_wakes_producers_that_wait(end: Callable[[Channel], None]) -> None:
    channel = Channel(1)
    producers = [Producer(channel, frames=5) for _ in range(3)]
    channel.get()
    end(channel)
    for producer in producers:
        producer.join()
        assert isinstance(producer.error, ChannelClosedError)


def test_a_closed_channel_takes_and_gives_nothing() -> None:
    channel = Channel(2)
    channel.put(FRAME)
    channel.close()
    with pytest.raises(ChannelClosedError):
        channel.get()
    with pytest.raises(ChannelClosedError):
        channel.put(FRAME)


def test_closing_after_the_last_frame_is_an_ordinary_end() -> None:
    channel = Channel(2)
    channel.finish()
    channel.close()
    assert channel.get() is None


def test_an_error_reaches_the_reader_at_once() -> None:
    channel = Channel(2)
    channel.put(FRAME)
    channel.finish(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        channel.get()


def test_the_first_error_stays() -> None:
    channel = Channel(2)
    channel.finish(ValueError("first"))
    channel.finish(ValueError("second"))
    channel.finish()
    with pytest.raises(ValueError, match="first"):
        channel.get()


def test_finish_wakes_a_reader_that_waits() -> None:
    channel = Channel(1)
    found: list[pa.RecordBatch | None] = []
    reader = threading.Thread(target=lambda: found.append(channel.get()), daemon=True)
    reader.start()
    channel.finish()
    reader.join(PATIENCE)
    assert found == [None]


def test_a_signal_at_any_moment_leaves_the_channel_unlocked() -> None:
    """A Ctrl-C raises wherever the main thread is. Producers and the coordinator must still get through."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    moments = random.Random(1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ThreadPoolExecutor(1) as coordinator:
            for _ in range(500):
                channel = Channel(2)
                with pytest.raises(KeyboardInterrupt):
                    get_after_alarm(channel, moments.uniform(1e-6, 60e-6))
                coordinator.submit(channel.finish).result(PATIENCE)
    finally:
        signal.signal(signal.SIGALRM, before)


def get_after_alarm(channel: Channel, seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    channel.get()
