"""The Flight server of a worker. It passes every call to the `WorkerService`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import ProtocolError, SparkfusionError, UserError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.transport.codec import key_of, order_of, pack_error, pack_info, pack_report, pack_status
from sparkfusion.transport.flight.calls import Call, CallServer, ServedCall, answer
from sparkfusion.transport.flight.protocol import FRAMES, LEASE, PIECE_BYTES, PIECES, TASK, piece_batch
from sparkfusion.transport.message import SMALL_MESSAGE, pack, unpack
from sparkfusion.transport.task_side import TaskSide
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.task import TaskOrder


@dataclass(frozen=True)
class Tls:
    """PEM files. With `ca`, callers have to show a certificate that it signed. The workers' own certificates are signed
    by `ca` or `peer_ca`."""

    certificate: str
    key: str
    ca: str = ""
    peer_ca: str = ""


class FlightWorker(CallServer):
    """The server of a worker. Other workers read frames with the secret of a query; everything else needs the token."""

    def __init__(self, service: WorkerService, token: str, bind: str, port: int, tls: Tls | None = None) -> None:
        self._service = service
        location = f"{'grpc+tls' if tls is not None else 'grpc'}://{bind}:{port}"
        secure: dict[str, Any] = {}
        if tls is not None:
            secure["tls_certificates"] = [(Path(tls.certificate).read_bytes(), Path(tls.key).read_bytes())]
            if tls.ca:
                secure |= {"verify_client": True, "root_certificates": Path(tls.ca).read_bytes()}
        calls = {TASK: Call(self._task), LEASE: Call(self._lease), FRAMES: Call(self._frames, by_secret=True)}
        super().__init__(location, token, service.opens, calls, **secure)

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        return iter([answer(lambda: self._act(action.type, memoryview(action.body)))])

    # ---- calls

    def _act(self, name: str, body: memoryview) -> bytes:
        if name == "info":
            return pack_info(self._service.info())
        if name == "status":
            return pack_status(self._service.status())
        _, fields, _ = unpack(body, SMALL_MESSAGE)
        if name == "discard":
            self._service.discard(key_of(fields))
            return pack("done")
        if name == "reaches":
            reached = self._service.reaches(fields.text("directory"), fields.text("name"), fields.text("content"))
            return pack("reached", {"reached": reached})
        raise ProtocolError(f"there is no action {name!r}")

    def _task(self, call: ServedCall) -> None:
        limits = self._service.guard.limits
        side = FlightTaskSide(call.reader, call.writer, limits.unit_bytes)

        def run() -> bytes:
            order = order_of(*call.expect("order", limits.message_bytes))
            ends, cancel = side.open(order)
            return pack_report(self._service.run(order, ends, cancel))

        try:
            side.send(answer(run))
        finally:
            side.close()

    def _lease(self, call: ServedCall) -> None:
        query = ""
        try:

            def hold() -> bytes:
                nonlocal query
                fields, _ = call.expect("hold", SMALL_MESSAGE)
                name, secret = fields.text("query"), fields.text("secret")
                if not name.isalnum() or len(name) > 64 or len(secret) < 16:
                    raise ProtocolError("a query needs a name and a secret")
                self._service.hold(name, secret)
                query = name
                return pack("held", {"others": self._service.others(name)})

            call.send(answer(hold))
            while query:
                unpack(call.receive(), SMALL_MESSAGE)
                call.send(answer(lambda: self._renew(query)))
        except SparkfusionError as error:
            call.send(pack_error(error))
        finally:
            if query:
                self._service.release(query)

    def _frames(self, call: ServedCall) -> None:
        fields, _ = _answer_or_refuse(lambda: call.expect("frames", self._service.guard.limits.message_bytes))
        paths = _answer_or_refuse(lambda: self._service.files(fields.text("query"), call.secret, fields.texts("names")))
        call.writer.begin(PIECES)
        for index, path in enumerate(paths):
            with pa.memory_map(str(path)) as source:
                while len(piece := source.read_buffer(PIECE_BYTES)):
                    call.writer.write_batch(piece_batch(index, piece))

    def _renew(self, query: str) -> bytes:
        self._service.renew(query)
        return pack("renewed", {"others": self._service.others(query)})


class FlightTaskSide(TaskSide):
    """The task's side of one Flight call. The task's thread sends; another one listens, because a read may block."""

    def __init__(self, reader: Any, writer: Any, unit_bytes: int) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._unit_bytes = unit_bytes
        self._listener: threading.Thread | None = None

    def open(self, order: TaskOrder) -> tuple[TaskEnds, CancelToken]:
        """Start to listen, and return the ends that the task uses."""
        name = f"sparkfusion-{order.key.query}-listen"
        self._listener = threading.Thread(target=self._listen, name=name, daemon=True)
        self._listener.start()
        return self.ends(order, order.compression), self.cancel

    def close(self) -> None:
        """Wait until the caller has closed its side, which it does when it has its answer. The call must outlive the
        listener, which would otherwise read from a call that has ended."""
        if self._listener is not None:
            self._listener.join()

    def send(self, message: bytes) -> None:
        try:
            self._writer.write_metadata(message)
        except (flight.FlightError, pa.ArrowException, OSError):
            raise ChannelClosedError from None

    def _listen(self) -> None:
        try:
            while True:
                kind, _, blobs = unpack(memoryview(self._reader.read_chunk().app_metadata), self._unit_bytes)
                self.answer(kind, blobs)
        except Exception:  # the caller has gone, or speaks nonsense
            self.close_answers()


def _answer_or_refuse(call: Callable[[], Any]) -> Any:
    """The result of a call that has no message for an error: its error is raised as one of Flight's own."""
    try:
        return call()
    except UserError as error:
        raise flight.FlightUnauthorizedError(error.message) from None
    except SparkfusionError as error:
        raise flight.FlightServerError(error.message) from None
