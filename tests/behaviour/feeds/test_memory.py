"""Many units pass through a query without staying in it."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

from sparkfusion import FeedContext, ReaderContext, Session, WorkUnit, WorkUnitFeedProvider

pytestmark = pytest.mark.runners("local", reason="it is about the coordinator, which is the same process everywhere")

LEDGER_BYTES_PER_UNIT = 40
"""The ledger keeps every unit, packed, for attempts that may follow."""
ROWS_EVERY = 1000
ONE_ROW = pa.record_batch({"v": pa.array([1], pa.int64())})


def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch | None:
    return ONE_ROW if unit.payload % ROWS_EVERY == 0 else None


@pytest.mark.parametrize("units", [200_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_stays_bounded_over_many_units(session: Session, units: int) -> None:
    """Measured between the first tenth and the end: what has grown is the ledger's, and little."""
    measured: list[int] = []

    class Many(WorkUnitFeedProvider):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
            for start in range(0, units, units // 10):
                measured.append(psutil.Process().memory_info().rss)
                yield from map(WorkUnit, range(start, start + units // 10))

    session.register_feed("f", Many(), schema=ONE_ROW.schema, reader=read, tasks=2)
    gc.collect()
    with session.sql("select count(*) as n from f").stream() as rows:
        assert next(rows).to_pylist() == [{"n": units // ROWS_EVERY}]
        (stats,) = rows.feeds()
    assert (stats.found, stats.handed, stats.done) == (units, units, units)
    assert stats.most_waiting <= 1000
    growth = psutil.Process().memory_info().rss - measured[1]
    assert growth < units * LEDGER_BYTES_PER_UNIT + 20e6, f"{growth:,} bytes more"
    steps = [after - before for before, after in itertools.pairwise(measured[1:])]
    assert max(steps) < units / 10 * LEDGER_BYTES_PER_UNIT + 15e6, f"it grows faster and faster: {steps}"
