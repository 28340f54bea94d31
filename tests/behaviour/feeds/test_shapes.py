"""Feeds anywhere in a query: unions, joins, aggregates, sorts, windows, subqueries, all like in-memory tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import Session, UserError
from tests.conftest import Connect
from tests.runners import some_first
from tests.suites.feeds import (
    ALL_RUN_LOCALLY,
    NOT_LOCAL,
    assert_answers,
    feed_numbers,
    feed_table,
    plain_answer,
    table_of,
)

F, G, H = table_of(range(8)), table_of(range(5, 9)), table_of([3])
T = pa.table({"k": pa.array([0, 1, 2, 3, 9, None], pa.int64()), "name": ["a", "b", "c", "d", "e", "f"]})
TABLES = {"f": F, "g": G, "h": H, "t": T}


SAME_PLANS = "it is about plans, which are the same on every runner; there some of these are enough"


@pytest.fixture(scope="module")
def fed(connect_shared: Connect) -> Session:
    """Feeds f, g (which share some rows) and h, and an ordinary table t."""
    session = connect_shared({"datafusion.execution.target_partitions": 3, "sparkfusion.slots": 4})
    feed_table(session, "f", F, units=6, tasks=3)
    feed_table(session, "g", G, units=4, tasks=2)
    feed_table(session, "h", H, units=1, tasks=1)
    session.register_record_batches("t", [T.to_batches()])
    return session


UNIONS = {
    "two": "select v, s from f union all select v, s from g",
    "three": "select v from f union all select v from g union all select v from h",
    "nested": "select v from (select v from f union all select v from g) u union all"
    " select v from (select v from h union all select v from f) w",
    "nested behind limits": "select count(*) as n from (select * from (select v from f union all select v from g"
    " limit 9) a union all select * from (select v from h union all select v from f limit 5) b) c",
    "with a table": "select k from f union all select k from t",
    "with values": "select k from f union all select * from (values (1), (2), (null)) x",
    "table first": "select k from t union all select k from f union all select 7",
    "with itself": "select v from f union all select v + 1 from f",
    "without duplicates": "select k, s from f union select k, s from g",
    "filtered apart": "select v from f where k = 1 union all select v from f where k = 2",
    "of aggregates": "select k, sum(v) as x from f group by k union all select k, sum(v) from g group by k",
    "of sorted limits": "(select v from f order by v desc limit 2) union all (select v from g order by v limit 2)",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", UNIONS.values(), ids=UNIONS)
def test_unions(fed: Session, query: str) -> None:
    assert_answers(fed, query, **TABLES)


AGGREGATES = {
    "global": "select count(*) as n, sum(v) as s, avg(v) as a, min(s) as lo, max(s) as hi from f",
    "no columns": "select count(*) as n from f",
    "no columns, filtered by nothing": "select count(1) as n from f where true",
    "grouped": "select k, count(*) as n, count(s) as m, sum(v) as x from f group by k",
    "distinct": "select count(distinct s) as n, count(distinct k) as m from f",
    "distinct grouped": "select k, count(distinct s) as n from f group by k",
    "filtered": "select k, sum(v) filter (where v % 2 = 0) as x from f group by k",
    "having": "select k, sum(v) as x from f group by k having sum(v) > 1000",
    "grouping sets": "select k, s, count(*) as n from f group by grouping sets ((k), (s), (k, s))",
    "rollup": "select k, s, sum(v) as x from f group by rollup (k, s)",
    "nested": "select n, count(*) as c from (select k, count(*) as n from f group by k) x group by n",
    "three levels": "select max(c) as m from (select n, count(*) as c from (select s, count(*) as n from f group by s)"
    " x group by n) y",
    "over a union": "select k, count(*) as n, sum(v) as x from (select * from f union all select * from g) group by k",
    "over a union with a table": "select k, count(*) as n from (select k from f union all select k from t) group by k",
    "statistics": "select stddev(v) as d, var_pop(v) as w, corr(v, k) as c, median(v) as m from f",
    "ordered": "select k, array_agg(v order by v) as a from f group by k",
    "first": "select k, first_value(v order by v desc) as a from f group by k",
    "top groups": "select k, max(v) as m from f group by k order by m desc limit 2",
    "distinct rows": "select distinct k, s from f",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", AGGREGATES.values(), ids=AGGREGATES)
def test_aggregates(fed: Session, query: str) -> None:
    assert_answers(fed, query, **TABLES)


JOINS = {
    "two feeds": "select f.v, g.s from f join g on f.v = g.v",
    "two feeds on a text": "select f.v, g.v as w from f join g on f.s = g.s",
    "itself": "select a.v, b.v as w from f a join f b on a.k = b.k and a.v < b.v",
    "with an aggregated feed": "select f.v, a.n from f join (select k, count(*) as n from g group by k) a on f.k = a.k",
    "of aggregated feeds": "select a.k, a.x, b.x as y from (select k, sum(v) as x from f group by k) a"
    " join (select k, sum(v) as x from g group by k) b on a.k = b.k",
    "three feeds": "select f.v from f join g on f.v = g.v join h on f.k = h.k",
    "with a small table": "select f.v, t.name from f join t on f.k = t.k",
    "aggregated above": "select t.name, sum(f.v) as x from f join t on f.k = t.k group by t.name",
    "left": "select f.v, g.v as w from f left join g on f.v = g.v",
    "right": "select f.v, g.v as w from f right join g on f.v = g.v",
    "full": "select f.v, g.v as w from f full join g on f.v = g.v",
    "left table": "select t.name, f.v from t left join f on f.k = t.k",
    "right table": "select t.name, f.v from f right join t on f.k = t.k",
    "full table": "select t.name, f.v from t full join f on f.k = t.k",
    "full table behind": "select t.name, f.v from f full join t on f.k = t.k",
    "semi": "select v from f where k in (select k from g where v > 6000)",
    "semi table": "select name from t where k in (select k from f)",
    "feed in table": "select v from f where k in (select k from t)",
    "exists": "select v from f where exists (select 1 from g where g.v = f.v)",
    "not exists": "select v from f where not exists (select 1 from g where g.v = f.v)",
    "table not exists": "select name from t where not exists (select 1 from f where f.k = t.k)",
    "not in": "select v from f where v not in (select v from g)",
    "not in with nulls": "select v from f where s not in (select s from g)",
    "not in table": "select v from f where k not in (select k from t where k is not null)",
    "cross": "select f.v, h.v as w from f, h",
    "cross table": "select f.v, t.name from t, f",
    "loop": "select f.v, g.v as w from f join g on f.v < g.v",
    "loop left": "select f.v, g.v as w from f left join g on f.v < g.v - 6000",
    "loop right": "select f.v, g.v as w from f right join g on f.v < g.v - 6000",
    "loop full": "select f.v, g.v as w from f full join g on f.v < g.v - 6000",
    "loop table left": "select t.k, f.v from t left join f on f.v < t.k",
    "loop table right": "select t.k, f.v from f right join t on f.v < t.k",
    "loop semi": "select name from t where exists (select 1 from f where f.v < t.k)",
    "union in the build side": "select count(*) as n from (select v from f union all select v from g) a, h",
    "union in the probe side": "select count(*) as n from h, (select v from f union all select v from g) a",
    "broadcast join of unions": "select a.v, b.k from (select v, k from f union all select v, k from g) a"
    " join (select k from t union all select k from h) b on a.k = b.k",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", JOINS.values(), ids=JOINS)
def test_joins(fed: Session, query: str) -> None:
    assert_answers(fed, query, **TABLES)


OTHERS = {
    "intersect": "select k, s from f intersect select k, s from g",
    "except": "select v from f except select v from g",
    "except all": "select k from f except all select k from g",
    "cte twice": "with w as (select k, sum(v) as x from f group by k) select a.k, b.x from w a join w b on a.k = b.k",
    "cte twice in a union": "with w as (select * from f where k > 1) select v from w union all select v from w",
    "scalar subquery": "select v from f where v > (select avg(v) from g)",
    "scalar subquery of itself": "select v, (select max(v) from f) as m from f",
    "correlated": "select v from f where v > (select min(v) from g where g.k = f.k)",
    "correlated count": "select t.name, (select count(*) from f where f.k = t.k) as n from t",
    "limit in a subquery": "select count(*) as n from (select v from f limit 7) x",
    "offset in a subquery": "select count(*) as n from (select v from f limit 7 offset 20) x",
    "sorted limit in a subquery": "select sum(v) as x from (select v from f order by v limit 7) y",
    "limit below a join": "select count(*) as n from (select * from f order by v limit 5) a join g on a.k = g.k",
    "row numbers": "select v, row_number() over (partition by k order by v) as n from f",
    "running sum": "select v, sum(v) over (partition by k order by v) as x from f",
    "window over everything": "select v, rank() over (order by k, v) as r, lag(v) over (order by v) as p from f",
    "window over an aggregate": "select k, rank() over (order by sum(v)) as r from f group by k",
    "window over a union": "select v, count(*) over (partition by k) as n from (select * from f union all"
    " select * from g) u",
    "first of each group": "select k, v from (select k, v, row_number() over (partition by k order by v desc) as n"
    " from f) x where n = 1",
    "distinct on": "select distinct on (k) k, v from f order by k, v desc",
    "unnest": "select v, unnest([k, k + 1]) as e from f",
    "case and cast": "select case when k > 2 then 'big' else s end as c, cast(v as double) / 2 as d from f",
    "values only": "select x.a, f.v from (values (1, 'x'), (3, 'y')) as x(a, b) join f on f.k = x.a",
    "nothing matches": "select v from f where v < 0",
    "or of both tables": "select count(*) as n from f, t where f.k = t.k or t.name = 'a'",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", OTHERS.values(), ids=OTHERS)
def test_other_shapes(fed: Session, query: str) -> None:
    assert_answers(fed, query, **TABLES)


ON_EVERY_RUNNER = {
    name: shapes[name]
    for shapes, names in (
        (UNIONS, ("three", "nested behind limits", "with a table")),
        (AGGREGATES, ("no columns", "rollup", "over a union")),
        (JOINS, ("with an aggregated feed", "full table", "not in with nulls", "loop left")),
        (OTHERS, ("intersect", "cte twice", "running sum")),
    )
    for name in names
}
FIRST = ("three", "rollup", "with an aggregated feed", "not in with nulls", "loop left", "cte twice")


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize("query", some_first(ON_EVERY_RUNNER, FIRST))
def test_shapes_on_every_runner(fed: Session, query: str) -> None:
    assert_answers(fed, query, **TABLES)


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize(
    "query", ["select k, v from f order by k, v desc", "select v from f union all select v from g order by v limit 9"]
)
def test_order_is_kept_on_every_runner(fed: Session, query: str) -> None:
    assert fed.sql(query).to_pylist() == plain_answer(query, **TABLES).to_pylist()


ORDERED = {
    "all": "select v, k from f order by v desc",
    "by two": "select k, v from f order by k, v desc",
    "top": "select v from f order by v desc limit 5",
    "top behind some": "select v from f order by v limit 5 offset 4",
    "top of a union": "select v from f union all select v from g order by v limit 9",
    "top of a join": "select f.v from f join g on f.v = g.v order by f.v limit 4",
    "groups": "select k, count(*) as n from f group by k order by k",
    "nulls first": "select s, v from f order by s nulls first, v",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", ORDERED.values(), ids=ORDERED)
def test_order_is_kept(fed: Session, query: str) -> None:
    assert fed.sql(query).to_pylist() == plain_answer(query, **TABLES).to_pylist()


def test_a_limit_gives_so_many_rows_of_the_feed(fed: Session) -> None:
    """Which ones is open, but not that each of them is there once."""
    for query, count in (("select v from f limit 7", 7), ("select v from f limit 7 offset 20", 4)):
        found = fed.sql(query).collect().column("v").to_pylist()
        assert (len(found), len(set(found))) == (count, count)
        assert set(found) <= set(F.column("v").to_pylist())
    distinct = fed.sql("select distinct k from f limit 3").collect().column("k").to_pylist()
    assert len(set(distinct)) == len(distinct) == 3


@pytest.mark.parametrize("tasks", [1, 3])
def test_what_is_joined_to_every_unit_is_the_same_for_all_of_them(session: Session, tasks: int) -> None:
    """A side that answers differently each time must be computed once, not again for every few units."""
    feed_numbers(session, "f", range(30), tasks=tasks)
    session.register_record_batches("t", [T.to_batches()])
    session.config["sparkfusion.feed_units_ahead"] = 2
    query = "select count(distinct r) as n, count(*) as rows from (select random() as r from t) x cross join f"
    assert session.sql(query).to_pylist() == [{"n": 6, "rows": 6 * 90}]


def test_a_query_that_needs_no_rows_asks_for_none(session: Session) -> None:
    provider = feed_numbers(session, "f", range(3))
    assert session.sql("select v from f where false").collect().num_rows == 0
    assert provider.calls == []


def test_views_and_frames_over_a_feed(fed: Session) -> None:
    fed.sql("create or replace view w as select k, v from f where v >= 3000").collect()
    assert_answers(
        fed, "select k, sum(v) as x from w group by k", w=plain_answer("select k, v from f where v >= 3000", f=F)
    )
    assert fed.table("f").count() == F.num_rows
    assert fed.table("f").sort("v").limit(2).to_pydict()["v"] == [0, 1]


def test_a_feed_can_be_written(fed: Session, tmp_path: Path) -> None:
    assert fed.sql("select k, v from f").write_parquet(tmp_path / "out") == F.num_rows
    fed.register_parquet("written", tmp_path / "out")
    assert (
        fed.sql("select sum(v) as x, count(*) as n from written").to_pylist()
        == plain_answer("select sum(v) as x, count(*) as n from f", f=F).to_pylist()
    )


REFUSED = {
    "switched off": ({"sparkfusion.enabled": False}, "select v from f"),
    "recursive": ({}, "with recursive r as (select 1 as n union all select n + 1 from r where n < 3)"
     " select r.n, f.v from r join f on f.k = r.n"),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "query"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_distributed_is_refused_by_name(connect: Connect, settings: dict[str, Any], query: str) -> None:
    """Its rows are nowhere else: no answer is better than an empty one."""
    session = connect(settings)
    feed_numbers(session, "f", range(3))
    with pytest.raises(UserError, match=r"feed f\b.*cannot be distributed") as caught:
        session.sql(query).collect()
    remedy = "SET sparkfusion.enabled = true" if settings else "write the rows that the query needs to Parquet"
    assert remedy in (caught.value.hint or "")
