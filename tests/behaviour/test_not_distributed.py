"""Queries that run on a single node: what is said of them, what is forbidden, and how much memory they have."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import ResourceError, Session, UserError
from sparkfusion.observe.events import QueryNotDistributed
from tests.behaviour.parts import PARTS, ROWS, TOTAL, part, record, write_parts
from tests.conftest import Connect

REFUSED = "select v, sum(v) filter (where k > 1) over (partition by k) as s from t"
WHY = "FILTER on a window function"
SMALL = ["select 1 as x", "select * from information_schema.tables", REFUSED]


@pytest.fixture
def small(connect: Connect, tmp_path: Path) -> Session:
    """A session over the table `t`, which is too small to be distributed."""
    session = connect()
    session.register_parquet("t", write_parts(tmp_path))
    return session


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.WARNING]


def test_a_refusal_is_logged_once_for_each_reason(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        session.sql(REFUSED).collect()
        session.sql(f"{REFUSED} order by v").collect()
    first = _warnings(caplog)
    assert len(first) == 1
    assert WHY in first[0]
    session.sql("select nth_value(v, 1) ignore nulls over (partition by k) as n from t").collect()
    assert len(_warnings(caplog)) == 2
    assert "IGNORE NULLS" in _warnings(caplog)[1]


def test_refusals_are_counted_in_events(session: Session) -> None:
    events = record(session)
    for _ in range(3):
        session.sql(REFUSED).collect()
    told = [event for event in events if isinstance(event, QueryNotDistributed)]
    assert [event.count for event in told] == [1, 2, 3]
    assert all(WHY in event.reason for event in told)


def test_a_distributed_query_says_nothing(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    events = record(session)
    session.sql("select k, count(*) as n from t group by k").collect()
    assert _warnings(caplog) == []
    assert not any(isinstance(event, QueryNotDistributed) for event in events)


@pytest.mark.parametrize("query", SMALL)
def test_a_small_query_says_nothing(small: Session, query: str, caplog: pytest.LogCaptureFixture) -> None:
    events = record(small)
    small.sql(query).collect()
    assert _warnings(caplog) == []
    assert not any(isinstance(event, QueryNotDistributed) for event in events)


def test_switched_off_says_nothing(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    for name, value in (("sparkfusion.enabled", False), ("datafusion.execution.target_partitions", 1)):
        session.config[name] = value
        session.sql("select k, count(*) as n from t group by k").collect()
        del session.config[name]
    assert _warnings(caplog) == []


def test_an_insert_says_that_its_query_is_not_distributed(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    session.sql("create table copied (v bigint)").collect()
    session.sql("insert into copied select v from t").collect()
    assert len(_warnings(caplog)) == 1
    assert session.table("copied").count() == session.table("t").count()


@pytest.mark.parametrize("query", SMALL)
def test_required_distribution_lets_small_queries_run(small: Session, query: str) -> None:
    small.config["sparkfusion.require_distributed"] = True
    assert small.sql(query).collect().num_rows > 0


def test_required_distribution_raises_for_refused_queries(session: Session) -> None:
    session.config["sparkfusion.require_distributed"] = True
    assert session.sql("select k, count(*) as n from t group by k").collect().num_rows == 7
    with pytest.raises(UserError, match=WHY) as raised:
        session.sql(REFUSED).collect()
    assert "sparkfusion.require_distributed" in (raised.value.hint or "")
    assert WHY in session.sql(REFUSED).explain_text()


@pytest.mark.parametrize(
    ("name", "value"), [("sparkfusion.enabled", False), ("datafusion.execution.target_partitions", 1)]
)
def test_required_distribution_raises_where_it_is_switched_off(session: Session, name: str, value: object) -> None:
    session.config["sparkfusion.require_distributed"] = True
    session.config[name] = value
    with pytest.raises(UserError, match=name.rsplit(".", 1)[-1]):
        session.sql("select k, count(*) as n from t group by k").collect()
    assert session.sql("select 1 as x").to_pydict() == {"x": [1]}


def test_a_file_that_came_since_is_read(small: Session, tmp_path: Path) -> None:
    assert small.sql("select count(v) as n from t where v >= 0").to_pydict() == {"n": [TOTAL]}
    pq.write_table(part(PARTS), tmp_path / "parts" / "new.parquet")
    assert small.sql("select count(v) as n from t where v >= 0").to_pydict() == {"n": [TOTAL + ROWS]}


# ---- memory, which has nothing to do with the runner


def _wide(session: Session, home: Path) -> None:
    values = range(60_000)
    rows = pa.table({"v": pa.array(values, pa.int64()), "s": [f"{value * 7919 % 60_013:0100d}" for value in values]})
    pq.write_table(rows, home / "wide.parquet", row_group_size=2000)
    session.register_parquet("wide", home / "wide.parquet")


LIMITS = {
    "datafusion.execution.target_partitions": 1,
    "datafusion.execution.batch_size": 256,
    "datafusion.execution.sort_spill_reservation_bytes": 64 * 1024,
    "datafusion.execution.sort_in_place_threshold_bytes": 64 * 1024,
}
JOIN = "select count(*) as n from wide a join wide b on a.s = b.s"
SORT = "select v, s from wide order by s"


@pytest.mark.parametrize(
    "limit",
    [{"sparkfusion.task_memory_bytes": "2MiB"}, {"datafusion.runtime.memory_limit": "4M"}],
    ids=["ours", "theirs"],
)
def test_a_single_node_has_the_memory_of_all_slots(tmp_path: Path, limit: dict[str, object]) -> None:
    with sparkfusion.connect(config=LIMITS | {"sparkfusion.slots": 2}) as session:
        _wide(session, tmp_path)
        for name, value in limit.items():
            session.config[name] = value
        with pytest.raises(ResourceError):
            session.sql(JOIN).collect()
        for name in limit:
            del session.config[name]
        assert session.sql(JOIN).to_pydict() == {"n": [60_000]}


@pytest.mark.parametrize("chosen", [False, True])
def test_a_single_node_spills(tmp_path: Path, chosen: bool) -> None:
    store = tmp_path / "store"
    store.mkdir()
    settings = LIMITS | {"sparkfusion.slots": 1, "sparkfusion.task_memory_bytes": "4MiB"}
    with sparkfusion.connect(config=settings | ({"sparkfusion.store_dir": store} if chosen else {})) as session:
        _wide(session, tmp_path)
        with session.sql(SORT).stream() as running:
            keys = next(running).column("s").to_pylist()
            used = [file for file in store.rglob("*") if file.is_file()]
            assert bool(used) == chosen
            for batch in running:
                keys += batch.column("s").to_pylist()
        assert keys == sorted(keys)
        assert len(keys) == 60_000
    assert list(store.iterdir()) == []
