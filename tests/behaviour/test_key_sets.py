"""The keys of filtered tables reduce the scans of others; the answer stays the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, KeySetDecided
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, record, write_files
from tests.conftest import Connect

KEY_SETS = "sparkfusion.key_set_bytes"
ALWAYS, NEVER = -1, 0
SHUFFLED = {
    **DISTRIBUTED,
    "sparkfusion.skip_empty_stages": False,  # a key set may not be needed any more when it is complete
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
INNER = "select p.name, s.v from parts p join sales s on p.k = s.k where p.v < 5"
REDUCED = {
    "inner": INNER,
    "inner with a condition": "select p.name, s.v from parts p join sales s on p.k = s.k and p.v < s.v where p.v < 5",
    "semi": "select v from sales s where exists (select 1 from parts p where p.k = s.k and p.v < 5)",
    "the other side of a semi join": (
        "select name from parts p where p.v < 5 and exists (select 1 from sales s where s.k = p.k)"
    ),
    "the other side of an anti join": (
        "select name from parts p where p.v < 9 and not exists (select 1 from sales s where s.k = p.k)"
    ),
    "the other side of a mark join": (
        "select name from parts p where p.v < 9 and (exists (select 1 from sales s where s.k = p.k) or p.v = 2)"
    ),
    "the optional side of a left join": "select p.name, s.v from parts p left join sales s on p.k = s.k where p.v < 5",
    "below an aggregate": (
        "select p.name, n from parts p join (select k, count(*) as n, sum(v) as t from sales group by k) s "
        "on p.k = s.k where p.v < 5"
    ),
    "below a correlated subquery": (
        "select p.name, s.v from parts p join sales s on p.k = s.k where p.v < 7 and "
        "s.v < (select 1.2 * avg(v) from sales i where i.k = p.k)"
    ),
    "from groups": (
        "select p.name, s.v from parts p join sales s on p.k = s.k where p.k in "
        "(select k from sales group by k having sum(v) > 290000)"
    ),
    "from groups of two columns": (
        "select s.v, g.n from sales s join (select k, j, count(*) as n from sales group by k, j having count(*) > 1) g "
        "on s.k = g.k and s.j = g.j"
    ),
    "a chain": (
        "select s.v, m.name from parts p join middle m on p.k = m.k join sales s on s.j = m.j where p.v < 3 and s.v > 2"
    ),
    "texts": "select p.k, s.v from parts p join sales s on p.name = s.name where p.v < 2",
    "two keys": "select p.name, s.v from middle p join sales s on p.k = s.k and p.j = s.j where p.v < 5",
    "an expression": "select p.name, s.v from parts p join sales s on p.k = s.k + 1 where p.v < 9",
    "no key": "select p.name, s.v from parts p join sales s on p.k = s.k where p.v < 0",
    "no key, left": "select p.name, s.v from parts p left join sales s on p.k = s.k where p.v < 0",
    "below a sort": f"{INNER} order by s.v, p.name",
    "above a limit": f"select count(*) as n, max(v) as v from ({INNER} order by s.v, p.name limit 7)",
    "a table with itself": "select a.v, b.v as w from sales a join sales b on a.v = b.v where a.k = 3",
}
KEPT = {
    "full": "select p.name, s.v from parts p full join sales s on p.k = s.k",
    "not in": "select v from sales where k not in (select k from parts where k is not null and v < 5)",
    "nulls match": "select p.name, s.v from parts p join sales s on p.k is not distinct from s.k where p.v < 9",
    "a limit": (
        "select p.name, count(*) as n from parts p join (select k from sales where k = 3 limit 2) s on p.k = s.k "
        "group by p.name"
    ),
    "a window": (
        "select p.name, n from parts p join (select k, sum(v) over (order by v) as n from sales) s on p.k = s.k "
        "where p.v < 5"
    ),
    "a union": (
        "select p.name, s.v from parts p join (select k, v from sales union all select k, v + 1 from sales) s "
        "on p.k = s.k where p.v < 5"
    ),
    "all groups together": "select p.name, n from parts p, (select count(*) as n from sales) s where p.v < 5",
}


def write(directory: Path, name: str, keys: list[int | None], files: int) -> Path:
    """A table in several files: a key with nulls, another key, the row's number, and a name for the key."""
    rows = pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "j": pa.array([row % 11 for row in range(len(keys))], pa.int64()),
            "v": pa.array(range(len(keys)), pa.int64()),
            "name": pa.array([None if key is None else f"name {key}" for key in keys], pa.string()),
        }
    )
    return write_files(directory, name, rows, files)


@pytest.fixture(scope="module")
def sold(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = connect_shared(SHUFFLED)
    directory = tmp_path_factory.mktemp("key_sets")
    session.register_parquet("parts", write(directory, "parts", [*range(20), None, 40], 2))
    session.register_parquet("middle", write(directory, "middle", [*range(30), None, 3, 3], 3))
    keys = [k if k % 9 else None for k in range(50)]
    session.register_parquet("sales", write(directory, "sales", keys * 100, 4))
    return session


def decisions(events: list[Event]) -> list[KeySetDecided]:
    return [event for event in events if isinstance(event, KeySetDecided)]


@pytest.mark.parametrize("sql", REDUCED.values(), ids=REDUCED)
def test_reduced_scans_give_the_same_rows(sold: Session, sql: str) -> None:
    sold.config[KEY_SETS] = ALWAYS
    events = record(sold)
    assert_distributed_like_single_node(sold.sql(sql))
    assert decisions(events)
    assert all(decided.used for decided in decisions(events))


@pytest.mark.parametrize("sql", KEPT.values(), ids=KEPT)
def test_a_scan_whose_other_rows_matter_is_not_reduced(sold: Session, sql: str) -> None:
    sold.config[KEY_SETS] = ALWAYS
    events = record(sold)
    assert_distributed_like_single_node(sold.sql(sql))
    assert decisions(events) == []


@pytest.mark.parametrize("tasks", [0, 1], ids=["split", "whole"])
def test_groups_partitioned_by_a_part_of_their_key_stay_where_they_are(sold: Session, tasks: int) -> None:
    """The join below the groups, and the one above them, are by k. Rows partitioned by (k, j) would not meet."""
    sold.config[KEY_SETS] = ALWAYS
    sold.config["sparkfusion.tasks"] = tasks
    sold.config["sparkfusion.task_cores"] = 4 if tasks else 1
    sql = (
        "select g.k, g.n, s.v from sales s join (select m.k, m.j, count(*) as n from middle m join parts p "
        "on m.k = p.k group by m.k, m.j having count(*) > 0) g on s.k = g.k"
    )
    try:
        assert "SinglePartitioned, gby=[k@0 as k, j@1 as j]" in sold.sql(sql).explain_text()
        assert_distributed_like_single_node(sold.sql(sql))
    finally:
        sold.sql("reset sparkfusion.tasks")
        sold.sql("reset sparkfusion.task_cores")


def test_volatile_queries_have_no_key_sets(sold: Session) -> None:
    sold.config[KEY_SETS] = ALWAYS
    graph = sold.sql(f"{INNER} and random() < 2").distribution().graph
    assert graph is not None
    assert [exchange.key_set for exchange in graph.exchanges] == [None] * len(graph.exchanges)


def test_key_sets_can_be_switched_off(sold: Session) -> None:
    sold.config[KEY_SETS] = NEVER
    events = record(sold)
    assert_distributed_like_single_node(sold.sql(INNER))
    assert decisions(events) == []


def test_explain_shows_the_key_set_and_its_size(sold: Session) -> None:
    sold.config[KEY_SETS] = ALWAYS
    shown = sold.sql(INNER).explain_text(analyze=True)
    assert "decided: key set used: 5 keys (k)" in shown
    assert "join_type=RightSemi" in shown
    assert "decided" not in sold.sql(INNER).explain_text()


@pytest.mark.parametrize(
    ("most", "bound", "reason"), [("32MiB", 19, "86% of all keys"), (1, 2, "more than sparkfusion.key_set_bytes (1)")]
)
def test_a_key_set_that_does_not_pay_is_not_used(sold: Session, most: object, bound: int, reason: str) -> None:
    sold.config[KEY_SETS] = most
    events = record(sold)
    sql = INNER.replace("p.v < 5", f"p.v < {bound}")
    assert_distributed_like_single_node(sold.sql(sql))
    (decided,) = decisions(events)
    assert not decided.used
    assert reason in decided.reason
    assert "join_type=RightSemi" not in sold.sql(sql).explain_text(analyze=True)


def test_a_small_key_set_is_used_by_default(sold: Session) -> None:
    sold.sql(f"reset {KEY_SETS}")
    events = record(sold)
    assert_distributed_like_single_node(sold.sql(INNER))
    (decided,) = decisions(events)
    assert decided.used


def test_one_task_for_the_whole_plan_reads_key_sets(sold: Session) -> None:
    sold.config[KEY_SETS] = ALWAYS
    sold.config["sparkfusion.tasks"] = 1
    try:
        for sql in (INNER, REDUCED["from groups"], REDUCED["a chain"]):
            events = record(sold)
            graph = sold.sql(sql).distribution().graph
            assert graph is not None
            assert all(stage.whole for stage in graph.stages)
            assert_distributed_like_single_node(sold.sql(sql))
            assert decisions(events)
    finally:
        sold.sql("reset sparkfusion.tasks")


def test_reduced_rows_are_written_by_tasks(sold: Session, tmp_path: Path) -> None:
    sold.config[KEY_SETS] = ALWAYS
    expected = sold.sql(INNER).to_datafusion().to_arrow_table().num_rows
    sold.sql(INNER).write_parquet(tmp_path / "written")
    assert pq.read_table(tmp_path / "written").num_rows == expected


NULLS_MEET = {
    "exists": "select v from big b where exists (select 1 from small s where s.a is not distinct from b.a)",
    "intersect": "select a from big where v > 5 intersect all select a from small",
}


@pytest.mark.parametrize("sql", NULLS_MEET.values(), ids=NULLS_MEET)
def test_rows_without_a_key_meet_where_null_equals_null(
    connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, sql: str
) -> None:
    """A semi join of the query with rows of another stage filters the scan as a key set does, but not here."""
    session = connect_shared(DISTRIBUTED)
    directory = tmp_path_factory.mktemp("nulls")
    for name, keys, files in (
        ("big", [k if k % 9 else None for k in range(4000)], 4),
        ("small", [None, 7, None, 5], 2),
    ):
        rows = pa.table({"a": pa.array(keys, pa.int64()), "v": pa.array(range(len(keys)), pa.int64())})
        session.register_parquet(name, write_files(directory, name, rows, files))
    assert_distributed_like_single_node(session.sql(sql))
