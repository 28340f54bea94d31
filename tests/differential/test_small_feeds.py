"""Joins with a feed that is said to be small: broadcast, inputs swapped where that is needed, answers as ever."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, Session, WorkUnit, WorkUnitFeedProvider
from sparkfusion.verify import Outcome, verify_query
from tests.conftest import Connect
from tests.suites.fed import FedSession

pytestmark = pytest.mark.runners("local", reason="it is about plans, which are the same on every runner")

OPTIONS = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 3}
SLICE = 7
SIDES = (("big", "small"), ("small", "big"))
OUTPUTS = ("*", "x.v, y.s", "y.s", "count(*)", "x.k, y.v", "x.s, count(*), sum(y.v)")
JOINS = [
    f"select {output} from {left} x {kind} {right} y on {condition}{' group by x.s' if 'x.s' in output else ''}"
    for kind in ("join", "left join", "right join", "full join")
    for left, right in SIDES
    for condition in ("x.k = y.k", "x.k = y.k and x.v < y.v")
    for output in OUTPUTS
]
SUBQUERIES = [
    query
    for left, right in SIDES
    for query in (
        f"select * from {left} where k in (select k from {right})",
        f"select * from {left} where k not in (select k from {right} where k is not null)",
        f"select * from {left} x where exists (select 1 from {right} y where x.k = y.k and y.v > x.v)",
        f"select * from {left} x where not exists (select 1 from {right} y where x.k = y.k and y.v > x.v)",
        f"select x.k from {left} x where x.v > 10 or x.k in (select k from {right})",
    )
]
NESTED = [
    "select a.s, count(*) from big a join small b on a.k = b.k join big c on b.v = c.v group by a.s",
    "select a.k, count(*) from big a join small b on a.k = b.k join big c on a.k = c.k group by a.k",
    "select a.k from big a join (select k, count(*) n from big group by k) g on a.k = g.k join small b on b.k = g.k",
    "select * from (select k, v from big union all select k, v from small) u join small b on u.k = b.k",
    "select count(*) from small a join small b on a.k = b.k",
]


def rows(count: int) -> pa.Table:
    chosen = random.Random(count)
    keys = [chosen.choice([*range(40), None]) for _ in range(count)]
    values = [chosen.randrange(50) for _ in range(count)]
    return pa.table({"k": pa.array(keys, pa.int64()), "v": values, "s": [chosen.choice("abc") for _ in range(count)]})


class Slices(WorkUnitFeedProvider):
    """Where slices of a table begin."""

    def __init__(self, count: int) -> None:
        self._count = count

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        yield from map(WorkUnit, range(0, self._count, SLICE))


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> FedSession:
    plain, fed = connect_shared(OPTIONS), connect_shared(OPTIONS)
    for name, table, hint in (("big", rows(300), None), ("small", rows(30), 30)):
        plain.register_record_batches(name, [table.to_batches()])
        register_slices(fed, name, table, hint)
    return FedSession(plain, fed)


def register_slices(session: Session, name: str, table: pa.Table, hint: int | None) -> None:
    session.register_feed(
        name,
        Slices(table.num_rows),
        schema=table.schema,
        reader=lambda unit, context: table.slice(unit.payload, SLICE),
        rows=hint,
    )


@pytest.mark.parametrize("query", [*JOINS, *SUBQUERIES, *NESTED])
def test_the_answer_is_the_single_node_one(session: FedSession, query: str, connect_shared: Connect) -> None:
    result = verify_query(session, query)
    assert result.outcome is Outcome.PASSED, result.describe()


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("select x.v, y.s from small x join big y on x.k = y.k", "Inner"),
        ("select x.v, y.s from big x join small y on x.k = y.k", "Inner"),
        ("select x.v, y.s from big x left join small y on x.k = y.k and x.v < y.v", "Right"),
        ("select * from big where k in (select k from small)", "RightSemi"),
    ],
)
def test_the_small_feed_goes_to_every_task(session: FedSession, query: str, kind: str, connect_shared: Connect) -> None:
    text = session.sql(query).explain_text()
    assert f"mode=CollectLeft, join_type={kind}" in text
    _, broadcast = text.split("── broadcast")
    assert "FeedScan: small" in broadcast
    assert "shuffle" not in text


def test_a_join_whose_partitions_are_needed_above_is_shuffled(session: FedSession, connect_shared: Connect) -> None:
    text = session.sql("select x.k, count(*) from big x join small y on x.k = y.k group by x.k").explain_text()
    assert "mode=Partitioned" in text


def test_a_feed_that_says_nothing_is_large(session: FedSession, connect_shared: Connect) -> None:
    text = session.sql("select x.v, y.s from big x join big y on x.k = y.k").explain_text()
    assert "mode=Partitioned" in text
