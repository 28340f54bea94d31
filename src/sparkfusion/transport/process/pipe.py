"""Messages between a worker and its child process, over a pair of sockets."""

from __future__ import annotations

import select
import socket
import struct
import threading

_LENGTH = struct.Struct("<Q")


class Pipe:
    """One end of the pipe. Any thread may send; one thread receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()

    def send(self, message: bytes, patience: float = -1) -> bool:
        """Send a message; returns whether it was sent. Raises OSError if the other end is gone.

        Args:
            patience: seconds to wait for another thread that is sending; without it, as long as that takes.
        """
        if not self._sending.acquire(timeout=patience):
            return False
        try:
            self._end.sendall(_LENGTH.pack(len(message)))
            self._end.sendall(message)
        finally:
            self._sending.release()
        return True

    def receive(self, patience: float | None = None) -> memoryview:
        """The next message. Raises EOFError if the other end is gone, and TimeoutError if nothing comes in time; after
        that the pipe cannot be used."""
        self._end.settimeout(patience)
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(length)

    def is_readable(self, patience: float) -> bool:
        """Whether a message comes, or the other end is closed, within this many seconds."""
        waiting = select.poll()
        waiting.register(self._end, select.POLLIN)
        return bool(waiting.poll(patience * 1000))

    def close(self) -> None:
        self._end.close()

    def _exactly(self, size: int) -> memoryview:
        view = memoryview(bytearray(size))
        at = 0
        while at < size:
            try:
                got = self._end.recv_into(view[at:])
            except ConnectionError:
                got = 0
            if got == 0:
                raise EOFError
            at += got
        return view
