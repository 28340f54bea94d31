"""A worker's ear: queries whose coordinator says nothing any more are let go."""

from __future__ import annotations

import threading

from sparkfusion.worker.server.host import WorkerHost

_TURN_SECONDS = 0.25


class Sweeper:
    """Looks after a worker's leases from a thread of its own, until `close`."""

    def __init__(self, host: WorkerHost, lease_seconds: float) -> None:
        self._host = host
        self._seconds = lease_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._sweep, name="sparkfusion-worker-leases", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _sweep(self) -> None:
        while not self._closed.wait(_TURN_SECONDS):
            self._host.release_silent(self._seconds)
