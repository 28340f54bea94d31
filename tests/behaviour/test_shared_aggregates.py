"""An aggregate that a query contains several times is computed once; the answer stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkfusion import Session
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_keyed
from tests.conftest import Connect

SHARED = "sparkfusion.shared_aggregate_bytes"
ALWAYS, NEVER = -1, 0
SUMS = "with t as (select k, sum(v) as s from sales group by k)"
PAIRS = "with t as (select k, j, sum(v) as s from sales group by k, j)"
TWICE = f"{SUMS} select k, s from t where s > (select avg(s) from t)"
COMPUTED_ONCE = {
    "compared with its average": TWICE,
    "joined with itself": f"{SUMS} select a.k, a.s, b.s as r from t a join t b on a.k = b.k",
    "joined with itself by an expression": f"{SUMS} select a.k, a.s, b.s as t from t a join t b on a.k = b.k + 1",
    "joined by a part of the group": (
        f"{PAIRS} select a.k, a.j, b.j as i, a.s + b.s as s from t a join t b on a.k = b.k"
    ),
    "joined by the other part of the group": (
        f"{PAIRS} select a.k, b.k as l, a.s + b.s as s from t a join t b on a.j = b.j"
    ),
    "left join": f"{SUMS} select a.k, b.k as l, a.s from t a left join t b on a.k = b.s",
    "twice in a union": f"{SUMS} select k, s from t union all select s, k from t where s > 1000",
    "sorted": f"{SUMS} select a.k, b.s from t a join t b on a.s = b.s order by b.s desc, a.k",
    "without groups": "with t as (select sum(v) as s from sales) select a.s, b.s as r from t a cross join t b",
    "texts": (
        "with t as (select name, max(v) as m from sales group by name) "
        "select a.name, b.m from t a join t b on a.name = b.name and a.m = b.m"
    ),
    "over a join": (
        "with t as (select p.name, sum(s.v) as s from parts p join sales s on p.k = s.k where p.v < 9 group by p.name) "
        "select name, s from t where s >= (select avg(s) from t)"
    ),
    "rollup": (
        "with t as (select k, j, sum(v) as s from sales group by rollup (k, j)) "
        "select a.k, a.j, a.s, b.s as r from t a join t b on a.s = b.s + 1"
    ),
    "distinct": (
        "with t as (select distinct k, name from sales) select a.k, b.name, a.name as n from t a join t b on a.k = b.k"
    ),
    "of three, two inside of another aggregate": (
        f"{SUMS}, u as (select s % 5 as g, count(*) as c from t group by s % 5) "
        "select a.g, a.c + b.c as c, (select max(s) + max(k) from t) as m from u a join u b on a.g = b.g"
    ),
}
COMPUTED_AGAIN = {
    "other rows": (
        "select a.k, b.s from (select k, sum(v) as s from sales where j = 1 group by k) a "
        "join (select k, sum(v) as s from sales where j = 2 group by k) b on a.k = b.k"
    ),
    "a limit below": (
        "with t as (select k, count(*) as n from (select k from sales where k = 3 limit 40) group by k) "
        "select a.k, b.n from t a join t b on a.k = b.k"
    ),
    "a limit above": f"{SUMS} select count(*) as c from (select k from t limit 4) a, (select k from t limit 3) b",
}


@pytest.fixture(scope="module")
def connected(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = connect_shared({**DISTRIBUTED, "sparkfusion.key_set_bytes": 0})
    directory = tmp_path_factory.mktemp("shared_aggregates")
    session.register_parquet("parts", write_keyed(directory, "parts", [*range(20), None, 40], 2))
    keys = [key if key % 9 else None for key in range(50)]
    session.register_parquet("sales", write_keyed(directory, "sales", keys * 60, 4))
    return session


@pytest.fixture(params=["split", "whole"])
def sold(connected: Session, request: pytest.FixtureRequest) -> Iterator[Session]:
    connected.config[SHARED] = ALWAYS
    if request.param == "whole":
        connected.config["sparkfusion.tasks"] = 1
        connected.config["sparkfusion.task_cores"] = 2
    yield connected
    for setting in ("sparkfusion.tasks", "sparkfusion.task_cores", "sparkfusion.key_set_bytes", SHARED):
        connected.sql(f"reset {setting}")


def shared_stages(session: Session, sql: str) -> list[str]:
    """What is decided about the stages that compute something once."""
    graph = session.sql(sql).distribution().graph
    assert graph is not None
    decisions = [decision for stage in graph.stages for decision in stage.decisions]
    return [decision for decision in decisions if decision.startswith("computed once")]


@pytest.mark.parametrize("sql", COMPUTED_ONCE.values(), ids=COMPUTED_ONCE)
def test_equal_aggregates_are_computed_once(sold: Session, sql: str) -> None:
    assert shared_stages(sold, sql)
    assert_distributed_like_single_node(sold.sql(sql))


@pytest.mark.parametrize("sql", COMPUTED_AGAIN.values(), ids=COMPUTED_AGAIN)
def test_other_aggregates_are_computed_where_they_are(sold: Session, sql: str) -> None:
    assert shared_stages(sold, sql) == []
    assert_distributed_like_single_node(sold.sql(sql))


@pytest.mark.parametrize("sql", COMPUTED_ONCE.values(), ids=COMPUTED_ONCE)
def test_key_sets_reduce_what_is_computed_once(sold: Session, sql: str) -> None:
    sold.config["sparkfusion.key_set_bytes"] = ALWAYS
    assert_distributed_like_single_node(sold.sql(sql))


def test_volatile_aggregates_are_computed_where_they_are(sold: Session) -> None:
    volatile = TWICE.replace("sum(v)", "sum(v + random())")
    assert shared_stages(sold, volatile) == []


def test_small_aggregates_are_computed_where_they_are(sold: Session) -> None:
    sold.sql(f"reset {SHARED}")
    assert shared_stages(sold, TWICE) == []
    sold.config[SHARED] = 1
    assert shared_stages(sold, TWICE)
    sold.config[SHARED] = NEVER
    assert shared_stages(sold, TWICE) == []


def test_an_aggregate_inside_of_another_one_is_read_by_it(sold: Session) -> None:
    found = shared_stages(sold, COMPUTED_ONCE["of three, two inside of another aggregate"])
    assert [decision.split(":")[0] for decision in found] == ["computed once for 2 parts of the query"] * 2


def test_explain_says_what_is_computed_once(sold: Session) -> None:
    shown = sold.sql(TWICE).explain_text()
    assert "decided: computed once for 2 parts of the query: it reads" in shown
    assert shown.count("DataSourceExec") == 1


def test_shared_rows_are_written_by_tasks(sold: Session, tmp_path: Path) -> None:
    expected = sold.sql(TWICE).to_datafusion().to_arrow_table().num_rows
    sold.sql(TWICE).write_parquet(tmp_path / "written")
    assert sold.read_parquet(tmp_path / "written").count() == expected
