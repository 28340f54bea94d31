"""No statistics of exchanges, no big tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion import Session
from sparkfusion.errors import PlanTooLargeError
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.wire import body, decode, kind, walk
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.traps.conftest import PARTITIONED_JOINS, Connected, graph_of


def test_exchange_sources_have_no_statistics(connected: Connected) -> None:
    graph = graph_of(connected(PARTITIONED_JOINS).sql("select f.v, e.v as w from facts f join events e on f.k = e.k"))
    plans = [stage.plan for stage in graph.stages] + [graph.head.plan or b""]
    sources = [node for plan in plans for node in walk(decode(plan)) if exchange_of(node) is not None]
    assert len(sources) == 2
    assert all(body(source).base_conf.statistics == b"" for source in sources)
    scans = [node for plan in plans for node in walk(decode(plan)) if kind(node) == "parquet_scan"]
    assert all(body(scan).base_conf.statistics != b"" for scan in scans)


def _big_table(session: Session) -> None:
    rows = list(range(20_000))
    for name in ("big", "small"):
        half = rows[:10_000] if name == "big" else rows[:5]
        batches = [[pa.record_batch({"a": half, "s": [f"row {i}" for i in half]})] for _ in range(2)]
        session.register_record_batches(name, batches)


def test_big_memory_tables_do_not_travel_in_plans(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 100_000})
    _big_table(session)
    sql = "select b.a, s.s from big b join small s on b.a = s.a"
    assert_distributed_eq(session, sql)
    assert max(len(stage.plan) for stage in graph_of(session.sql(sql)).stages) < 20_000


def test_spooled_tables_answer_like_memory_tables(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 1})
    _big_table(session)
    assert_distributed_eq(session, "select * from big")
    assert_distributed_eq(session, "select s from big where a % 7 = 0")
    assert_distributed_eq(session, "select f.k from facts f cross join small")
    assert_distributed_eq(session, "select count(*) as n, sum(f.k) as t from small cross join facts f")


def test_spooled_tables_may_have_dictionaries_that_change(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 1})
    batches = [pa.record_batch({"d": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["c", "b"])]
    session.register_record_batches("words", [batches, batches])
    assert_distributed_eq(session, "select d, count(*) as n from words group by d")


def test_the_cap_of_the_plan_size_names_the_table(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": "1GiB", "sparkfusion.max_plan_bytes": 50_000})
    _big_table(session)
    with pytest.raises(PlanTooLargeError, match="big") as raised:
        session.sql("select a from big").collect()
    assert "Parquet" in (raised.value.hint or "")
