"""A Flight server for exchange calls: it checks the caller, then calls a function by the name of the call."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import ProtocolError, SparkfusionError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.shared_secrets import is_same_secret
from sparkfusion.transport.codec import pack_error
from sparkfusion.transport.flight.protocol import SECRET_HEADER, TOKEN_HEADER, bearer
from sparkfusion.transport.message import Fields, unpack

_log = logging.getLogger("sparkfusion")
_DOOR = "door"
_SHUTDOWN_SECONDS = 2.0


@dataclass(frozen=True)
class ServedCall:
    """One exchange call as the server sees it: reader, writer, and the secret that the caller showed."""

    reader: Any
    writer: Any
    secret: str
    is_gone: Callable[[], bool]

    def receive(self) -> memoryview:
        """The caller's next message. Raises `StopIteration` when the caller has closed its side."""
        data = self.reader.read_chunk().app_metadata
        if data is None:
            raise ProtocolError("a call consists of messages")
        return memoryview(data)

    def expect(self, kind: str, limit: int) -> tuple[Fields, list[memoryview]]:
        """The next message, which must be of that kind."""
        found, fields, blobs = unpack(self.receive(), limit)
        if found != kind:
            raise ProtocolError(f"a call begins with {kind!r}, not with {found!r}")
        return fields, blobs

    def send(self, message: bytes) -> None:
        self.writer.write_metadata(message)

    def send_last(self, message: bytes) -> None:
        """Send why the call ends, and wait until the caller has hung up. Always raises.

        If the server ended the call first, a write of the caller could fail before the caller has read the message.
        Arrow's client then throws away what it has not read.
        """
        self.send(message)
        while True:
            self.receive()


@dataclass(frozen=True)
class Call:
    """What a call does. `by_secret`: a caller that shows the secret of a query may make it without the token."""

    serve: Callable[[ServedCall], None]
    by_secret: bool = False


class CallServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves from when it is made until `shutdown`, on threads of gRPC. No message can end it.

    Args:
        token: what callers show. A call with `by_secret` may show the secret of a query instead.
        opens: whether a text is such a secret.
    """

    def __init__(
        self, location: str, token: str, opens: Callable[[str], bool], calls: Mapping[bytes, Call], **secure: Any
    ) -> None:
        self._calls = calls
        super().__init__(location, middleware={_DOOR: _Door(token, opens)}, **secure)

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        passed: _Passed = context.get_middleware(_DOOR)
        call = self._calls.get(descriptor.command)
        if call is None or not (passed.trusted or call.by_secret):
            raise flight.FlightUnauthorizedError("there is no such call, or you are not allowed to make it")
        try:
            call.serve(ServedCall(reader, writer, passed.secret, context.is_cancelled))
        except flight.FlightError:
            raise
        except (pa.ArrowException, OSError, StopIteration, ChannelClosedError) as error:
            _log.debug("the caller has gone: %s", error)

    def stop(self) -> bool:
        """Stop listening. Returns whether all calls have ended; does not wait for a caller that hangs."""
        stopping = threading.Thread(target=self.shutdown, name="sparkfusion-server-shutdown", daemon=True)
        stopping.start()
        stopping.join(_SHUTDOWN_SECONDS)
        return not stopping.is_alive()

    def list_actions(self, context: Any) -> list[Any]:
        return []


class _Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def __init__(self, token: str, opens: Callable[[str], bool]) -> None:
        self._expected = bearer(token)
        self._opens = opens

    def start_call(self, info: Any, headers: dict[str, list[Any]]) -> _Passed:
        secret = _header(headers, SECRET_HEADER)
        if is_same_secret(_header(headers, TOKEN_HEADER), self._expected):
            return _Passed(secret, trusted=True)
        if info.method == flight.FlightMethod.DO_EXCHANGE and secret and self._opens(secret):
            return _Passed(secret, trusted=False)
        raise flight.FlightUnauthenticatedError("this server requires a token, or the secret of a query")


class _Passed(flight.ServerMiddleware):  # type: ignore[misc]
    def __init__(self, secret: str, *, trusted: bool) -> None:
        self.secret = secret
        self.trusted = trusted


def _header(headers: dict[str, list[Any]], name: str) -> str:
    found = [value for key, values in headers.items() if key.lower() == name for value in values]
    return str(found[0]) if len(found) == 1 and isinstance(found[0], str) else ""


def answer(call: Callable[[], bytes]) -> bytes:
    """The answer of a call, or its error, as a message."""
    try:
        return call()
    except SparkfusionError as error:
        return pack_error(error)
    except (flight.FlightError, StopIteration):
        raise
    except Exception as error:
        _log.exception("a call failed")
        return pack_error(classify(error))


def _leave_servers_to_parent() -> None:
    """In a forked child: never end the servers that it inherited. pyarrow would do that when the child exits, and wait
    for ever, because their threads are in the parent only."""
    for finalizer in list(vars(weakref.finalize)["_registry"]):
        alive = finalizer.peek()
        if alive is not None and isinstance(alive[0], CallServer):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(alive[0]))
            finalizer.detach()


os.register_at_fork(after_in_child=_leave_servers_to_parent)
