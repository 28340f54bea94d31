"""Every unit is read once, whatever the numbers of units, tasks, partitions and slots."""

from __future__ import annotations

import itertools

import pytest

from sparkfusion import Session, WorkUnit
from sparkfusion.observe.events import TaskStarted
from tests.behaviour.parts import record
from tests.conftest import Connect
from tests.suites.feeds import (
    ALL_RUN_LOCALLY,
    NOT_LOCAL,
    SCHEMA,
    Scripted,
    assert_answers,
    batch_of,
    exactly_once,
    feed_numbers,
    table_of,
    units_seen,
)

pytestmark = pytest.mark.sample("local", "flight")  # units are divided among workers

SAME_PLANS = "how a plan deals with no rows is the same on every runner; there some of these are enough"
LOCAL_GRID = "the grid is about the ledger, which is the same on every runner; there its corners are enough"


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_so_many_tasks_read_all_units_once(session: Session, tasks: int) -> None:
    provider = feed_numbers(session, "f", range(20), tasks=tasks)
    events = record(session)
    found = session.sql("select * from f").collect()
    assert found.schema == SCHEMA
    assert sorted(found.column("v").to_pylist()) == sorted(table_of(range(20)).column("v").to_pylist())
    assert len({event.key.task for event in events if isinstance(event, TaskStarted)}) == tasks
    assert (provider.calls, provider.asked, provider.closed) == ([None], 20, 1)


def test_a_task_reads_units_in_their_order(session: Session) -> None:
    feed_numbers(session, "f", range(30), tasks=1)
    assert session.sql("select v from f").collect().equals(table_of(range(30)).select(["v"]))


@pytest.mark.parametrize(("units", "tasks"), [(0, 1), (0, 4), (1, 4), (5, 4)])
def test_fewer_units_than_tasks(session: Session, units: int, tasks: int) -> None:
    feed_numbers(session, "f", range(units), tasks=tasks)
    assert units_seen(session.sql("select unit from f").collect()) == exactly_once(range(units))


EMPTY = {
    "rows": "select * from f",
    "count": "select count(*) as n, sum(v) as s, max(s) as m from f",
    "groups": "select k, count(*) as n from f group by k",
    "order": "select * from f order by v limit 3",
    "union": "select v from f union all select v from g",
    "join": "select f.v from f join g on f.k = g.k",
    "left join": "select g.v, f.v as w from g left join f on f.k = g.k",
    "anti join": "select v from g where k not in (select k from f)",
    "cross join": "select count(*) as n from f, g",
    "window": "select v, row_number() over (order by v) as n from f",
    "cube": "select k, count(*) as n from f group by cube (k)",
    "rollup": "select k, unit, sum(v) as x, count(*) as n from f group by rollup (k, unit)",
    "scalar": "select v from g where v > (select coalesce(max(v), 2000) from f)",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", EMPTY.values(), ids=EMPTY)
def test_a_feed_without_units_is_an_empty_table(session: Session, query: str) -> None:
    feed_numbers(session, "f", [], tasks=2)
    feed_numbers(session, "g", range(4), tasks=2)
    assert_answers(session, query, f=table_of([]), g=table_of(range(4)))


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize("name", ["rows", "cube", "left join"])
def test_a_feed_without_units_on_every_runner(session: Session, name: str) -> None:
    feed_numbers(session, "f", [], tasks=2)
    feed_numbers(session, "g", range(4), tasks=2)
    assert_answers(session, EMPTY[name], f=table_of([]), g=table_of(range(4)))


NO_ROWS_LEFT = {
    "rows": "select v from f where v < 0",
    "count": "select count(*) as n, max(v) as m from f where v < 0",
    "cube": "select k, count(*) as n from f where v < 0 group by cube (k)",
    "union": "select k, count(*) as n from (select k from f where v < 0 union all select k from f where v < 0)"
    " group by rollup (k)",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", NO_ROWS_LEFT.values(), ids=NO_ROWS_LEFT)
def test_a_feed_of_which_no_row_is_left_is_an_empty_table(session: Session, query: str) -> None:
    feed_numbers(session, "f", range(4), tasks=2)
    assert_answers(session, query, f=table_of(range(4)))


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", NO_ROWS_LEFT.values(), ids=NO_ROWS_LEFT)
def test_a_feed_whose_units_have_no_rows_is_an_empty_table(session: Session, query: str) -> None:
    feed_numbers(session, "f", range(4), tasks=2, reader=lambda unit, context: batch_of(unit.payload).slice(0, 0))
    assert_answers(session, query, f=table_of([]))


def test_units_without_rows(session: Session) -> None:
    """Some units have no rows: no batch at all, or an empty one."""
    whole = table_of(range(10))

    def read(unit: WorkUnit, context: object) -> object:
        del context
        if unit.payload % 3 == 0:
            return None
        return whole.filter([row == unit.payload for row in whole.column("unit").to_pylist()]).slice(
            0, 0 if unit.payload % 3 == 1 else None
        )

    feed_numbers(session, "f", range(10), tasks=3, reader=read)
    assert units_seen(session.sql("select unit from f").collect()) == exactly_once([2, 5, 8])
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 9}]


def _check_partitioned(session: Session, name: str, partitions: int, tasks: int) -> None:
    """Partition p has p units: also none, and more partitions than tasks or fewer."""

    def script(partition: int | None, context: object) -> list[int]:
        assert partition is not None
        return [partition * 100 + number for number in range(partition)]

    provider = feed_numbers(session, name, Scripted(script, partitions), tasks=tasks)
    expected = [partition * 100 + number for partition in range(partitions) for number in range(partition)]
    found = session.sql(f"select unit, count(*) as n from {name} group by unit").to_pylist()
    assert sorted((row["unit"], row["n"]) for row in found) == [(unit, 3) for unit in expected]
    assert sorted(provider.calls, key=str) == list(range(partitions)), "each partition is asked for once"
    assert provider.closed == 1


@pytest.mark.runners("local", reason=LOCAL_GRID)
@pytest.mark.parametrize("partitions", range(1, 8))
def test_no_row_is_lost_at_any_ratio_of_partitions_to_tasks(session: Session, partitions: int) -> None:
    for tasks in range(1, 6):
        _check_partitioned(session, f"f{tasks}", partitions, tasks)


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 3), (3, 2), (4, 3), (7, 5)])
def test_no_row_is_lost_at_odd_ratios_of_partitions_to_tasks(session: Session, partitions: int, tasks: int) -> None:
    _check_partitioned(session, "f", partitions, tasks)


@pytest.mark.runners("local", reason=LOCAL_GRID)
def test_no_row_is_lost_at_any_ratio_of_units_to_tasks(session: Session) -> None:
    for units, tasks in itertools.product((1, 3, 7, 50), range(1, 6)):
        name = f"f{units}_{tasks}"
        feed_numbers(session, name, range(units), tasks=tasks)
        assert units_seen(session.sql(f"select unit from {name}").collect()) == exactly_once(range(units))


def test_units_of_a_partition_are_read_by_one_task_in_order(session: Session) -> None:
    """Rows of a task come in the order in which it read its units; each task's rows come from few partitions."""
    partitions, units = 5, 12

    def script(partition: int | None, context: object) -> list[int]:
        assert partition is not None
        return [partition * 100 + number for number in range(units)]

    feed_numbers(session, "f", Scripted(script, partitions), tasks=2)
    seen = session.sql("select unit from f").collect().column("unit").to_pylist()[::3]
    for partition in range(partitions):
        own = [unit for unit in seen if unit // 100 == partition]
        assert own == [partition * 100 + number for number in range(units)]


def test_a_partition_is_not_shared_between_tasks(session: Session) -> None:
    """The partial sums of a task that reads a partition hold all of its rows: seen in what each task wrote."""

    def script(partition: int | None, context: object) -> list[int]:
        assert partition is not None
        return [partition] * 40

    feed_numbers(session, "f", Scripted(script, 3), tasks=3)
    with session.sql("select unit, count(*) as n from f group by unit").stream() as running:
        found = sorted((row["unit"], row["n"]) for batch in running for row in batch.to_pylist())
        read = sorted(report.units for report in running.reports() if report.units)
    assert found == [(unit, 120) for unit in range(3)]
    assert sum(read) == 120
    assert all(count % 40 == 0 for count in read), f"a partition was divided: {read}"


def test_fewer_slots_than_tasks(connect: Connect) -> None:
    session = connect({"sparkfusion.slots": 1, "sparkfusion.feed_units_ahead": 2})
    feed_numbers(session, "f", range(23), tasks=4)
    feed_numbers(session, "p", Scripted(lambda partition, context: [partition, partition], 5), tasks=4)
    assert units_seen(session.sql("select unit from f").collect()) == exactly_once(range(23))
    assert units_seen(session.sql("select unit from p").collect()) == exactly_once(range(5), rows=6)
    assert session.sql("select count(*) as n from f join p on f.unit = p.unit").to_pylist() == [{"n": 5 * 3 * 6}]


def test_many_units_are_all_read_once(session: Session) -> None:
    feed_numbers(session, "f", range(3000), tasks=3)
    found = session.sql("select unit, count(*) as n from f group by unit").collect()
    assert sorted(found.column("unit").to_pylist()) == list(range(3000))
    assert set(found.column("n").to_pylist()) == {3}


def test_heavy_and_light_units_with_wishes_for_hosts_are_all_read_once(session: Session) -> None:
    units = [WorkUnit(i, weight=1 + 999 * (i % 4 == 0), hosts=("nowhere",) if i % 3 else ()) for i in range(40)]
    feed_numbers(session, "f", Scripted(units), tasks=3)
    assert units_seen(session.sql("select unit from f").collect()) == exactly_once(range(40))


def test_queries_at_the_same_time_have_the_feed_each_to_themselves(session: Session) -> None:
    provider = feed_numbers(session, "f", range(12), tasks=2)
    with session.sql("select unit from f").stream() as first, session.sql("select unit from f").stream() as second:
        for running in (first, second):
            assert sum(batch.num_rows for batch in running) == 36
    assert (len(provider.calls), provider.closed) == (2, 2)
