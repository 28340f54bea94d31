"""The jobs of one query on Spark Connect, cancelled by their tag."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sparkfusion.runner.spark.tagged_jobs import TaggedJobs

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_ANSWER_SECONDS = 2.0


class ConnectJobs(TaggedJobs):
    """Operations of a Connect session. A tag belongs to the thread that set it. Connect has no descriptions of jobs."""

    def __init__(self, session: SparkSession, tag: str) -> None:
        super().__init__(tag)
        self._session = session
        self._call: threading.Thread | None = None

    def _begin(self, description: str) -> None:
        self._session.addTag(self._tag)

    def _end(self) -> None:
        self._session.removeTag(self._tag)

    def interrupt(self) -> None:
        """Cancel the operations that run now. Waits a moment for the server."""
        self._cancel()

    def _cancel(self) -> None:
        """In a thread of its own: if the server is gone, the client tries for minutes to reach it."""
        if self._call is None or not self._call.is_alive():
            self._call = threading.Thread(target=self._interrupt, name=f"{self._tag}-interrupt", daemon=True)
            self._call.start()
        self._call.join(_ANSWER_SECONDS)

    def _interrupt(self) -> None:
        try:
            self._session.interruptTag(self._tag)
        except Exception:  # the user has stopped the session, and its operations with it
            self._log_failure()
