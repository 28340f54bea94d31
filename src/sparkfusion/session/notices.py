"""What a session logs about queries that run on a single node although they read enough to be distributed."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from sparkfusion.errors import UserError
from sparkfusion.ids import QueryId
from sparkfusion.log_fields import about
from sparkfusion.observe.events import QueryNotDistributed, Subscriber
from sparkfusion.plan.stage import Distribution, Why

_log = logging.getLogger("sparkfusion")


def require_distributed(distribution: Distribution) -> None:
    """Raise for a query that would run on a single node, unless it reads too little to be split."""
    if not distribution.distributed and distribution.why is not Why.SMALL:
        raise UserError(
            f"the query cannot be distributed: {distribution.reason}",
            hint="change the query, or SET sparkfusion.require_distributed = false to run it on a single node",
        )


class Notices:
    """Counts such queries of one session by their reasons. Each reason is logged once. Any thread may call it."""

    def __init__(self, emit: Subscriber) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def note(self, query: QueryId, distribution: Distribution) -> None:
        """Log and emit that a query starts on a single node, unless the user asked for that or the query is small."""
        if distribution.distributed or distribution.why is not Why.REFUSED:
            return
        reason = str(distribution.reason)
        with self._lock:
            self._counts[reason] += 1
            count = self._counts[reason]
        if count == 1:
            _log.warning(
                "a query runs on a single node because it cannot be distributed: %s "
                "(logged once for each reason; sparkfusion.require_distributed makes it an error)",
                reason,
                extra=about(query),
            )
        self._emit(QueryNotDistributed(query, reason, count))
