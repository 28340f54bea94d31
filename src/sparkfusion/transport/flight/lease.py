"""Hold a query on a worker: an exchange call that lasts as long as the query, with heartbeats in both directions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import ExternalError, SparkfusionError
from sparkfusion.ids import QueryId
from sparkfusion.transport.base import OnLate, OnLost
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.flight.flight_errors import flight_error
from sparkfusion.transport.flight.protocol import LEASE, RENEW_SECONDS, end_call
from sparkfusion.transport.message import SMALL_MESSAGE, pack, unpack
from sparkfusion.worker.awake_clock import AwakeClock

_CLOSE_SECONDS = 8.0
_LATE_CLOSE_SECONDS = 0.2
_LATE_SECONDS = 2.0


class FlightLease:
    """The coordinator sends a heartbeat every half second, or four times within its patience if that is more often.

    The worker answers each one. Silence on either side ends the lease. One thread sends heartbeats and watches the
    time. Another one reads the answers, because a read may block for as long as the worker is silent.
    """

    def __init__(
        self,
        client: flight.FlightClient,
        options: flight.FlightCallOptions,
        address: str,
        query: QueryId,
        secret: str,
        patience: float,
        on_lost: OnLost,
        on_late: OnLate,
    ) -> None:
        self._address = address
        self._patience = patience
        self._on_lost = on_lost
        self._on_late = on_late
        self._late = False
        self._renew_seconds = min(RENEW_SECONDS, patience / 4)
        self._clock = AwakeClock(self._renew_seconds)
        self._heard = self._clock.now
        self._others = 0
        self._held = threading.Event()
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._error: SparkfusionError | None = None
        try:
            self._writer, self._reader = client.do_exchange(flight.FlightDescriptor.for_command(LEASE), options)
            self._writer.write_metadata(pack("hold", {"query": query, "secret": secret}))
        except (flight.FlightError, pa.ArrowException) as error:
            raise flight_error(error, address) from error
        self._listener = _start(self._listen, f"sparkfusion-{query}-lease-listen")
        if not self._held.wait(patience) or self._error is not None:
            self._closing.set()
            end_call(self._writer, self._reader, clean=False)
            self._listener.join()
            raise self._refusal()
        self._speaker = _start(self._speak, f"sparkfusion-{query}-lease")

    def close(self) -> None:
        """End the call. The worker ends its side when it has removed everything of the query."""
        with self._lock:
            first = not self._closing.is_set()
            self._closing.set()
        if first:
            try:
                self._writer.done_writing()
            except flight.FlightError:
                self._reader.cancel()
        if not self._ended.wait(_LATE_CLOSE_SECONDS if self._late else _CLOSE_SECONDS):
            self._reader.cancel()
        for thread in (self._speaker, self._listener):
            if thread is not threading.current_thread():
                thread.join()
        end_call(self._writer, self._reader, clean=self._error is None)

    def others(self) -> int:
        return self._others

    def _refusal(self) -> SparkfusionError:
        return self._error or ExternalError(f"worker {self._address} does not answer")

    def _speak(self) -> None:
        while not self._closing.wait(self._renew_seconds):
            silence = self._clock.tick() - self._heard
            if silence > self._patience:
                self._lose(ExternalError(f"worker {self._address} has been silent for {silence:.0f} seconds"))
                return
            late = silence > min(_LATE_SECONDS, self._patience / 2)
            if late != self._late:
                self._late = late
                self._on_late(late)
            try:
                with self._lock:
                    if not self._closing.is_set():
                        self._writer.write_metadata(pack("renew"))
            except flight.FlightError as error:
                self._fail(flight_error(error, self._address))
                return

    def _listen(self) -> None:
        try:
            while True:
                kind, fields, _ = unpack(memoryview(self._reader.read_chunk().app_metadata), SMALL_MESSAGE)
                if kind == "error":
                    raise error_of(fields)
                self._others = fields.integer("others")
                self._heard = self._clock.now
                self._held.set()
        except StopIteration:
            self._fail(ExternalError(f"worker {self._address} ended the query"))
        except SparkfusionError as error:
            self._fail(error)
        except Exception as error:
            self._fail(flight_error(error, self._address))
        finally:
            self._ended.set()
            self._held.set()

    def _fail(self, error: SparkfusionError) -> None:
        self._error = error
        if self._held.is_set() and not self._closing.is_set():
            self._lose(error)

    def _lose(self, error: SparkfusionError) -> None:
        with self._lock:
            first = not self._closing.is_set()
            self._closing.set()
        if first:
            self._reader.cancel()
            self._on_lost(error)


def _start(work: Callable[[], Any], name: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
