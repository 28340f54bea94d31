"""What a session says about lines that a query left out."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sparkfusion.feed.rejected import Rejected, add_up
from sparkfusion.ids import QueryId, StageId
from sparkfusion.observe.events import RowsRejected, Subscriber
from sparkfusion.worker.task import TaskReport

_log = logging.getLogger("sparkfusion")


def rejected_by(reports: Iterable[TaskReport]) -> list[Rejected]:
    """The lines that these tasks left out, by table. What several scans of a table left out counts once."""
    stages: dict[StageId, list[Rejected]] = {}
    for report in reports:
        if report.rejected is not None:
            stages.setdefault(report.key.stage, []).append(report.rejected)
    tables: dict[str, Rejected] = {}
    for found in (each for parts in stages.values() for each in add_up(parts)):
        known = tables.get(found.table)
        if known is None or known.count < found.count:
            tables[found.table] = found
    return [tables[table] for table in sorted(tables)]


def tell_rejected(query: QueryId, rejected: Iterable[Rejected], emit: Subscriber) -> None:
    """A warning and an event for each table."""
    for each in rejected:
        lines = "line" if each.count == 1 else "lines"
        shown = "; ".join(map(str, each.first))
        _log.warning(
            "query %s skipped %s %s of table %r: %s%s",
            query,
            f"{each.count:,}",
            lines,
            each.table,
            shown,
            "; …" if each.count > len(each.first) else "",
        )
        emit(RowsRejected(query, each.table, each.count, each.first))
