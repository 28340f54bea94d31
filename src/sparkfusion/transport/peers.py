"""A worker's connections to other workers, made when frames of theirs are first needed."""

from __future__ import annotations

import threading

from sparkfusion.errors import UserError
from sparkfusion.transport.base import Access
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.server.fetch import FrameReader

_MOST = 1000


class PeerConnections:
    """Called with an address, gives the way to that worker's frames. Any thread. They show a query's secret."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._open: dict[str, FrameReader] = {}

    def __call__(self, address: str) -> FrameReader:
        with self._lock:
            if address not in self._open:
                while len(self._open) >= _MOST:
                    self._open.pop(next(iter(self._open))).close()
                self._open[address] = _connected(address, self._access)
            return self._open[address]

    def close(self) -> None:
        with self._lock:
            for each in self._open.values():
                each.close()
            self._open.clear()


def _connected(address: str, access: Access) -> FrameReader:
    try:
        return connect(address, access)
    except UserError as error:
        hint = f"what the coordinator has installed, every worker needs too; {error.hint}" if error.hint else None
        raise UserError(f"a worker cannot read from {address}: {error.message}", hint=hint) from error
