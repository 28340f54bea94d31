"""The client side of a Flight connection, for coordinators and for other workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import LostInputError, QueryCancelledError, SparkfusionError, UserError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.transport.base import Access, Lease, OnLate, OnLost, ignore_late
from sparkfusion.transport.caller_side import CallerSide
from sparkfusion.transport.codec import error_of, info_of, pack_key, pack_order, status_of
from sparkfusion.transport.flight.flight_errors import RefusedError, flight_error
from sparkfusion.transport.flight.lease import FlightLease
from sparkfusion.transport.flight.protocol import FRAMES, SECRET_HEADER, TASK, TOKEN_HEADER, bearer, end_call, piece_of
from sparkfusion.transport.flight.stall import Stall
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import FileChunk
from sparkfusion.worker.server.guard import Limits
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskOrder, TaskReport

_ASK_SECONDS = 3.0
_TLS = "flight+tls"
_READ_AHEAD = 16 << 20  # bytes of one call that wait for its reader


class Flight:
    """The transport of `flight://host:port` and `flight+tls://host:port`."""

    def connect(self, address: str, access: Access) -> FlightChannel:
        return FlightChannel(address, access)


class FlightChannel:
    """The connection to one worker, made when it is first needed."""

    def __init__(self, address: str, access: Access, limits: Limits | None = None) -> None:
        self.address = address
        self._token = access.token
        self._limits = limits or Limits()
        self._client = _client(address, access)

    # ---- small questions

    def info(self) -> WorkerInfo:
        return info_of(self._ask("info"))

    def status(self) -> WorkerStatus:
        return status_of(self._ask("status"))

    def reaches(self, directory: str, name: str, content: str) -> bool:
        asked = pack("reaches", {"directory": directory, "name": name, "content": content})
        return self._ask("reaches", asked).flag("reached")

    def discard(self, key: TaskKey) -> None:
        self._ask("discard", pack_key("discard", key))

    def _ask(self, name: str, body: bytes = b"") -> Fields:
        try:
            (answer,) = self._client.do_action(flight.Action(name, body), self._options(timeout=_ASK_SECONDS))
            kind, fields, _ = unpack(answer.body, self._limits.message_bytes)
        except SparkfusionError:
            raise
        except Exception as error:
            found = flight_error(error, self.address)
            if isinstance(found, RefusedError) and not self._token:
                found.message = f"worker {self.address} requires a token, and none was given"
            raise found from error
        if kind == "error":
            raise error_of(fields)
        return fields

    # ---- queries and tasks

    def hold(
        self, query: QueryId, secret: str, patience: float, on_lost: OnLost, on_late: OnLate = ignore_late
    ) -> Lease:
        return FlightLease(self._client, self._options(), self.address, query, secret, patience, on_lost, on_late)

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        writer, reader = self._call(TASK)
        answered = False
        try:
            cancel.watch(reader.cancel)
            writer.write_metadata(pack_order(order))
            report = CallerSide(
                f"worker {self.address}",
                lambda: memoryview(reader.read_chunk().app_metadata),
                writer.write_metadata,
                ends,
                self._limits.message_bytes,
            ).serve()
            answered = True
            return report
        except (flight.FlightError, pa.ArrowException, StopIteration) as error:
            if cancel.cancelled:
                raise QueryCancelledError("the task was cancelled", where=order.key) from None
            raise flight_error(error, self.address) from error
        finally:
            end_call(writer, reader, clean=answered)
            cancel.watch(None)

    # ---- frames

    def read(
        self, query: QueryId, secret: str, names: Sequence[str], cancel: CancelToken, patience: float
    ) -> Iterator[FileChunk]:
        """Uses `do_exchange`: pyarrow's `do_get` waits for the first message and cannot be cancelled meanwhile."""
        try:
            writer, reader = self._call(FRAMES, secret=secret)
        except SparkfusionError as error:
            raise _lost_input_error(error, self.address) from error
        whole = False
        try:
            cancel.watch(reader.cancel)
            writer.write_metadata(pack("frames", {"query": query, "names": list(names)}))
            writer.done_writing()
            with Stall(patience, reader.cancel) as stall:
                for chunk in reader:
                    stall.rest()  # the caller may take its time
                    yield piece_of(chunk.data)
                    stall.note_progress()
            whole = True
        except (flight.FlightError, pa.ArrowException) as error:
            if cancel.cancelled:
                raise QueryCancelledError("the task was cancelled") from None
            raise _lost_input_error(flight_error(error, self.address), self.address) from error
        finally:
            end_call(writer, reader, clean=whole)
            cancel.watch(None)

    def _call(self, name: bytes, *, secret: str = "") -> tuple[Any, Any]:
        try:
            writer, reader = self._client.do_exchange(
                flight.FlightDescriptor.for_command(name), self._options(secret=secret)
            )
        except (flight.FlightError, pa.ArrowException) as error:
            raise flight_error(error, self.address) from error
        return writer, reader

    def close(self) -> None:
        self._client.close()

    def _options(self, *, timeout: float | None = None, secret: str = "") -> flight.FlightCallOptions:
        headers = []
        if self._token:
            headers.append((TOKEN_HEADER.encode(), bearer(self._token).encode()))
        if secret:
            headers.append((SECRET_HEADER.encode(), secret.encode()))
        return flight.FlightCallOptions(timeout=timeout, headers=headers)


def _lost_input_error(error: SparkfusionError, address: str) -> SparkfusionError:
    """A worker that refuses the secret no longer holds the query, so its frames are lost. If a worker cannot be reached
    at all, nothing is known to be lost."""
    if isinstance(error, RefusedError):
        return LostInputError(f"worker {address} has no frames of this query")
    return error if isinstance(error, UserError) else LostInputError(error.message)


def _client(address: str, access: Access) -> flight.FlightClient:
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise UserError(f"{address!r} is not the address of a worker", hint="it looks like flight://host:port")
    secure = parts.scheme == _TLS
    host = f"[{host}]" if ":" in host else host
    options = {
        "tls_root_certs": _pem(access.ca),
        "cert_chain": _pem(access.certificate),
        "private_key": _pem(access.key),
    }
    return flight.FlightClient(
        f"{'grpc+tls' if secure else 'grpc'}://{host}:{port}",
        generic_options=[
            # a worker that comes back is to be found at once, by a channel of its own
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
            ("grpc.enable_http_proxy", 0),
            # gRPC measures how much it may read ahead, and measures too much on a busy machine (150 MB were seen)
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", _READ_AHEAD),
        ],
        **({name: value for name, value in options.items() if value is not None} if secure else {}),
    )


def _pem(path: str) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path!r}: {error.strerror}") from error
