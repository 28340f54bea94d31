"""A worker's end of Flight: calls in, `WorkerHost` behind. Nothing that arrives here can end the server."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import SparkfusionError, UserError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.transport.codec import key_of, order_of, pack_error, pack_info, pack_report, pack_status
from sparkfusion.transport.flight.protocol import (
    FRAMES,
    LEASE,
    PIECE_BYTES,
    PIECES,
    SECRET_HEADER,
    SMALL_MESSAGE,
    TASK,
    TOKEN_HEADER,
    bearer,
    piece_batch,
)
from sparkfusion.transport.flight.task_channel import CallChannel
from sparkfusion.transport.host import WorkerHost
from sparkfusion.transport.message import Fields, ProtocolError, pack, unpack

_log = logging.getLogger("sparkfusion")
_DOOR = "door"


@dataclass(frozen=True)
class Tls:
    """PEM files. With `ca`, callers have to show a certificate that it signed. It or `peer_ca` signed workers' own."""

    certificate: str
    key: str
    ca: str = ""
    peer_ca: str = ""


class FlightWorker(flight.FlightServerBase):  # type: ignore[misc]
    """Serves from when it is made until `shutdown`, on threads of gRPC's."""

    def __init__(self, host: WorkerHost, token: str, bind: str, port: int, tls: Tls | None = None) -> None:
        self._host = host
        location = f"{'grpc+tls' if tls is not None else 'grpc'}://{bind}:{port}"
        secure: dict[str, Any] = {}
        if tls is not None:
            secure["tls_certificates"] = [(Path(tls.certificate).read_bytes(), Path(tls.key).read_bytes())]
            if tls.ca:
                secure |= {"verify_client": True, "root_certificates": Path(tls.ca).read_bytes()}
        super().__init__(location, middleware={_DOOR: _Door(host, token)}, **secure)

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        del context
        return iter([_answer(lambda: self._act(action.type, memoryview(action.body)))])

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        passed: _Passed = context.get_middleware(_DOOR)
        serve = {TASK: self._task, LEASE: self._lease}.get(descriptor.command)
        try:
            if descriptor.command == FRAMES:
                self._frames(reader, writer, passed.secret)
            elif serve is None or not passed.trusted:
                raise flight.FlightUnauthorizedError("there is no such call, or you are not allowed to make it")
            else:
                serve(reader, writer)
        except flight.FlightError:
            raise
        except (pa.ArrowException, OSError, StopIteration, ChannelClosedError) as error:
            _log.debug("the caller has gone: %s", error)

    # ---- calls

    def _act(self, name: str, body: memoryview) -> bytes:
        if name == "info":
            return pack_info(self._host.info())
        if name == "status":
            return pack_status(self._host.status())
        _, fields, _ = unpack(body, SMALL_MESSAGE)
        if name == "discard":
            self._host.discard(key_of(fields))
            return pack("done")
        if name == "reaches":
            reached = self._host.reaches(fields.text("directory"), fields.text("name"), fields.text("content"))
            return pack("reached", {"reached": reached})
        raise ProtocolError(f"there is no action {name!r}")

    def _task(self, reader: Any, writer: Any) -> None:
        limits = self._host.guard.limits
        channel = CallChannel(reader, writer, limits.unit_bytes)

        def run() -> bytes:
            order = order_of(*_expected("order", reader, limits.message_bytes))
            ends, cancel = channel.open(order)
            return pack_report(self._host.run(order, ends, cancel))

        try:
            channel.send(_answer(run))
        finally:
            channel.close()

    def _lease(self, reader: Any, writer: Any) -> None:
        query = ""
        try:

            def hold() -> bytes:
                nonlocal query
                fields, _ = _expected("hold", reader, SMALL_MESSAGE)
                name, secret = fields.text("query"), fields.text("secret")
                if not name.isalnum() or len(name) > 64 or len(secret) < 16:
                    raise ProtocolError("a query needs a name and a secret")
                self._host.hold(name, secret)
                query = name
                return pack("held", {"others": self._host.others(name)})

            writer.write_metadata(_answer(hold))
            while query:
                unpack(memoryview(reader.read_chunk().app_metadata), SMALL_MESSAGE)
                writer.write_metadata(_answer(lambda: self._renewed(query)))
        except SparkfusionError as error:
            writer.write_metadata(pack_error(error))
        finally:
            if query:
                self._host.release(query)

    def _frames(self, reader: Any, writer: Any, secret: str) -> None:
        fields, _ = _told(lambda: _expected("frames", reader, self._host.guard.limits.message_bytes))
        paths = _told(lambda: self._host.files(fields.text("query"), secret, fields.texts("names")))
        writer.begin(PIECES)
        for index, path in enumerate(paths):
            with pa.memory_map(str(path)) as source:
                while len(piece := source.read_buffer(PIECE_BYTES)):
                    writer.write_batch(piece_batch(index, piece))

    def _renewed(self, query: str) -> bytes:
        self._host.renew(query)
        return pack("renewed", {"others": self._host.others(query)})


class _Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Every call shows the token; one that only reads frames of a query may show that query's secret instead."""

    def __init__(self, host: WorkerHost, token: str) -> None:
        self._host = host
        self._expected = bearer(token).encode()

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> _Passed:
        secret = _header(headers, SECRET_HEADER)
        if hmac.compare_digest(_header(headers, TOKEN_HEADER).encode(), self._expected):
            return _Passed(secret, trusted=True)
        if info.method == flight.FlightMethod.DO_EXCHANGE and secret and self._host.opens(secret):
            return _Passed(secret, trusted=False)
        raise flight.FlightUnauthenticatedError("this worker requires a token")


class _Passed(flight.ServerMiddleware):  # type: ignore[misc]
    def __init__(self, secret: str, *, trusted: bool) -> None:
        self.secret = secret
        self.trusted = trusted


def _header(headers: dict[str, list[Any]], name: str) -> str:
    found = [value for key, values in headers.items() if key.lower() == name for value in values]
    return str(found[0]) if len(found) == 1 and isinstance(found[0], str) else ""


def _expected(kind: str, reader: Any, limit: int) -> tuple[Fields, list[memoryview]]:
    chunk = reader.read_chunk()
    if chunk.app_metadata is None:
        raise ProtocolError("a call begins with a message")
    found, fields, blobs = unpack(memoryview(chunk.app_metadata), limit)
    if found != kind:
        raise ProtocolError(f"a call begins with {kind!r}, not with {found!r}")
    return fields, blobs


def _answer(call: Callable[[], bytes]) -> bytes:
    """What a call answers, or its error."""
    try:
        return call()
    except SparkfusionError as error:
        return pack_error(error)
    except (flight.FlightError, StopIteration):
        raise
    except Exception as error:
        _log.exception("a call failed")
        return pack_error(classify(error))


def _told(call: Callable[[], Any]) -> Any:
    """Where a call has no message to answer with, its error goes as Flight's own."""
    try:
        return call()
    except UserError as error:
        raise flight.FlightUnauthorizedError(error.message) from None
    except SparkfusionError as error:
        raise flight.FlightServerError(error.message) from None
