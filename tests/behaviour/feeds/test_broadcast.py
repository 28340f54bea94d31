"""A feed on the side of a join that every task needs whole is read once, and read by all."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from sparkfusion import Session, UserError, WorkUnit
from tests.suites.feeds import ALL_RUN_LOCALLY, MANY, NOT_LOCAL, Scripted, assert_answers, feed_numbers, table_of

pytestmark = pytest.mark.sample("local", "flight", "spark-local")

SMALL, LARGE = table_of([1, 2]), table_of(range(12))
T = pa.table({"k": pa.array([0, 1, 2], pa.int64())})

BUILD_SIDES = {
    "cross join": "select small.v, large.v as w from small cross join large",
    "nested loop": "select small.v, large.v as w from small join large on small.v > large.v",
    "outer nested loop": "select small.v, large.v as w from small left join large on small.v < large.v - 5000",
    "semi": "select v from small where exists (select 1 from large where large.v < small.v)",
    "aggregated": "select large.v, a.m from large cross join (select max(v) as m from small) a",
    "union": "select count(*) as n from (select v from small union all select k from t) a cross join large",
    "filtered by its maximum": "select v from large where v > (select max(v) from small)",
}


@pytest.fixture
def feeds(session: Session) -> tuple[Scripted, Scripted]:
    session.register_record_batches("t", [T.to_batches()])
    return feed_numbers(session, "small", [1, 2], tasks=2), feed_numbers(session, "large", range(12), tasks=3)


@pytest.mark.runners("local", reason=MANY)
@pytest.mark.parametrize("query", BUILD_SIDES.values(), ids=BUILD_SIDES)
def test_a_feed_on_the_build_side_is_consumed_once(
    session: Session, feeds: tuple[Scripted, Scripted], query: str
) -> None:
    check_consumed_once(session, feeds, query)


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize("name", [pytest.param("cross join", marks=pytest.mark.long), "outer nested loop", "union"])
def test_a_feed_on_the_build_side_is_consumed_once_on_every_runner(
    session: Session, feeds: tuple[Scripted, Scripted], name: str
) -> None:
    check_consumed_once(session, feeds, BUILD_SIDES[name])


def check_consumed_once(session: Session, feeds: tuple[Scripted, Scripted], query: str) -> None:
    assert_answers(session, query, small=SMALL, large=LARGE, t=T)
    for provider, units in zip(feeds, (2, 12), strict=True):
        assert (provider.calls, provider.asked, provider.closed) == ([None], units, 1)


def test_a_small_table_goes_to_the_tasks_of_the_feed(session: Session, feeds: tuple[Scripted, Scripted]) -> None:
    """The feed is never the broadcast side by mistake: it looks empty to the planner, and may be of any size."""
    query = "select large.v from t join large on t.k = large.k"
    plan = session.sql(query).explain_text()
    assert "mode=CollectLeft" in plan
    assert_answers(session, query, t=T, large=LARGE)


def test_two_feeds_are_joined_by_shuffles(session: Session, feeds: tuple[Scripted, Scripted]) -> None:
    plan = session.sql("select large.v from small join large on small.k = large.k").explain_text()
    assert "mode=Partitioned" in plan
    assert plan.count("shuffle") >= 2


def test_a_scan_is_fed_once_for_each_time_it_stands_in_the_query(session: Session) -> None:
    provider = feed_numbers(session, "f", range(6), tasks=2)
    found = session.sql("select count(*) as n from f a join f b on a.v = b.v").to_pylist()
    assert found == [{"n": 18}]
    assert (provider.calls, provider.asked, provider.closed) == ([None, None], 12, 1)


def test_one_provider_may_feed_two_tables(session: Session) -> None:
    provider = Scripted(range(4))
    feed_numbers(session, "a", provider, tasks=2)
    feed_numbers(session, "b", provider, tasks=1)
    assert session.sql("select count(*) as n from a join b on a.v = b.v").to_pylist() == [{"n": 12}]
    assert (len(provider.calls), provider.closed) == (2, 1)


def test_the_probe_side_may_fail_after_the_build_side_is_read(session: Session) -> None:
    def broken(partition: int | None, context: object) -> Iterator[WorkUnit]:
        yield WorkUnit(1)
        raise OSError("the listing broke")

    small = feed_numbers(session, "small", [1, 2], tasks=1)
    large = feed_numbers(session, "large", Scripted(broken), tasks=2)
    with pytest.raises(UserError, match=r"'large'.*the listing broke"):
        session.sql("select count(*) from small cross join large").collect()
    assert (small.closed, large.closed) == (1, 1)
