"""Starts the check of the executors when a session connects, so that the first query waits less for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from sparkfusion.runner.spark.tagged_jobs import TaggedJobs


class HeadStart:
    """Starts to check the executors, which also starts their Python workers. Code that needs executors calls the same
    check, which waits for this one and reports what does not match."""

    def __init__(self, jobs: TaggedJobs, check: Callable[[], None], *, is_needed: bool) -> None:
        self._jobs = jobs
        self._check = check
        self._thread: threading.Thread | None = None
        if is_needed:
            self._thread = threading.Thread(target=self._run, name="sparkfusion-check", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with suppress(Exception), self._jobs.under_way("sparkfusion: do executors fit the driver?"):
            self._check()

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.stop()
            self._thread.join()
