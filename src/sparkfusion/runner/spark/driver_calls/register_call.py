"""The call of a resident worker to the driver: it registers, and learns when it has to end."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import flight

from sparkfusion.runner.spark.driver_calls.certificate import open_client
from sparkfusion.runner.spark.feed_address import driver_unreachable
from sparkfusion.transport.flight.protocol import SECRET_HEADER, WORKER, end_call
from sparkfusion.transport.message import SMALL_MESSAGE, pack, unpack

_ANSWER_SECONDS = 20.0


@dataclass(frozen=True)
class RegisterAddress:
    """Where resident workers of a session register. The secret is the session's, and permits nothing else.
    `certificate`: the server's, if it talks TLS."""

    host: str
    port: int
    secret: str = field(repr=False)
    certificate: bytes = field(default=b"", repr=False)

    def own_host(self) -> str:
        """The address of this machine by which it reaches the driver, and so the driver reaches it."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, place = found[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(place)  # sends nothing
                return str(probe.getsockname()[0])
        except OSError as error:
            raise driver_unreachable(self.host, self.port, error) from error


class RegisterCall:
    """One worker's call, for as long as the `with` lasts.

    Attributes:
        answer: what the driver wants: see `registry`.
        told: whether the driver has said that the worker has to end. If not, the call broke.
    """

    def __init__(
        self, to: RegisterAddress, address: str, executor: str, launch: int, task: int, ended: threading.Event
    ) -> None:
        """`ended` is set when the driver ends the call, or is gone."""
        self._ended = ended
        self.told = False
        self._client = open_client(to.host, to.port, to.certificate)
        try:
            self._writer, self._reader = self._client.do_exchange(
                flight.FlightDescriptor.for_command(WORKER),
                flight.FlightCallOptions(headers=[(SECRET_HEADER.encode(), to.secret.encode())]),
            )
            # reading has no time limit of its own
            timer = threading.Timer(_ANSWER_SECONDS, self._reader.cancel)
            timer.start()
            try:
                registered = {"address": address, "executor": executor, "launch": launch, "task": task}
                self._writer.write_metadata(pack("register", registered))
                self.answer = self._receive()
            finally:
                timer.cancel()
        except (flight.FlightError, pa.ArrowException, OSError, StopIteration) as error:
            self._client.close()
            raise driver_unreachable(to.host, to.port, error) from error
        self._listener = threading.Thread(target=self._listen, name="sparkfusion-register-listen", daemon=True)
        self._listener.start()

    def __enter__(self) -> RegisterCall:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        end_call(self._writer, self._reader, clean=False)
        self._listener.join()
        self._client.close()

    def _receive(self) -> str:
        return unpack(memoryview(self._reader.read_chunk().app_metadata), SMALL_MESSAGE)[0]

    def _listen(self) -> None:
        try:
            self._receive()
            self.told = True
        except Exception:  # the driver is gone, or this side has ended the call
            return
        finally:
            self._ended.set()
