"""Large in-memory tables by reference: written once for each version, read by tasks, and never out of date."""

from __future__ import annotations

import datetime
import gc
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import Session, UserError
from sparkfusion.session.dataframe import look_inside
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, part, rows_of, single_node
from tests.behaviour.probes import until
from tests.conftest import Connect

pytestmark = pytest.mark.any_width

COUNT = "select k, count(*) as n, sum(v) as s from m group by k"
SEEN = pytest.mark.runners("local", "flight", "spark-local", "spark-shared", reason="tasks see this machine's files")


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    """Every in-memory table counts as large, and is written below the test's directory."""
    return connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1, "sparkfusion.store_dir": tmp_path})


def _versions(home: Path) -> list[str]:
    """The versions that are written."""
    return sorted({path.parent.name for path in home.rglob("*.parquet")})


def _from_arrow(session: Session, name: str = "m") -> None:
    session.from_arrow(part(0), name)


def _create_table_as(session: Session) -> None:
    session.from_arrow(part(0), "source")
    session.sql("create table m as select * from source")


def _insert(session: Session) -> None:
    session.from_arrow(part(0), "source")
    session.sql("create table m (part bigint, k bigint, v bigint)")
    session.sql("insert into m select * from source")


def _batches(session: Session) -> None:
    session.register_record_batches("m", [[batch] for batch in part(0).to_batches(max_chunksize=300)])


def _view(session: Session) -> None:
    session.from_arrow(part(0), "source")
    session.sql("create view m as select * from source where v >= 0")


MAKERS = [_from_arrow, _create_table_as, _insert, _batches, _view]


@SEEN
@pytest.mark.parametrize("make", MAKERS)
def test_rows_are_written_once_and_are_in_no_plan(
    session: Session, tmp_path: Path, make: Callable[[Session], None]
) -> None:
    make(session)
    for _ in range(2):
        assert_distributed_like_single_node(session.sql(COUNT))
        assert_distributed_like_single_node(session.table("m").select("v"))
    assert len(_versions(tmp_path)) == 1
    engine, query = look_inside(session.sql(COUNT))
    planned = engine.plan(query)
    assert planned.plan is not None
    assert len(planned.plan) < 5000


@SEEN
def test_a_frame_of_rows_is_by_reference_too(session: Session, tmp_path: Path) -> None:
    frame = session.from_arrow(part(0)).filter("v > 10")
    assert_distributed_like_single_node(frame)
    assert len(_versions(tmp_path)) == 1


@pytest.mark.runners("local", "flight", reason="which rows a table has is decided before a task starts")
@pytest.mark.parametrize("make", MAKERS[:4])
def test_a_changed_table_never_serves_old_rows(session: Session, make: Callable[[Session], None]) -> None:
    make(session)
    frame = session.sql(COUNT)
    assert_distributed_like_single_node(frame)
    for change in (
        "insert into m values (9, 9, 9)",
        "update m set v = v + 1 where k = 3",
        "delete from m where k = 5",
        "insert into m select part, k, v from m where k = 1",
    ):
        before = frame.collect()
        session.sql(change)
        assert_distributed_like_single_node(session.sql(COUNT))
        assert_distributed_like_single_node(frame)
        assert frame.collect().sort_by("k") != before.sort_by("k")


@SEEN
def test_an_old_version_goes_when_no_query_reads_it(session: Session, tmp_path: Path) -> None:
    _from_arrow(session)
    session.sql(COUNT).collect()
    first = _versions(tmp_path)
    with session.sql("select v from m").stream() as running:
        seen = next(running).num_rows
        session.sql("update m set v = 0")
        assert session.sql("select sum(v) as s from m where k >= 0").to_pydict() == {"s": [0]}
        assert len(_versions(tmp_path)) == 2
        seen += sum(batch.num_rows for batch in running)
    del running
    gc.collect()
    assert seen == part(0).num_rows
    assert len(_versions(tmp_path)) == 1
    assert _versions(tmp_path) != first


def test_a_dropped_name_means_its_next_table(session: Session) -> None:
    _create_table_as(session)
    old = session.sql("select sum(v) as s from m where k >= 0")
    session.sql(COUNT).collect()
    session.sql("drop table m")
    with pytest.raises(UserError, match="m"):
        session.sql(COUNT)
    session.from_arrow(part(1), "m")
    assert_distributed_like_single_node(session.sql(COUNT))
    assert old.to_pydict() == single_node(old).to_pydict() == {"s": [sum(part(0).column("v").to_pylist())]}
    session.sql("create or replace table m as select 1 as k, 2 as v")
    assert session.sql(COUNT).to_pylist() == [{"k": 1, "n": 1, "s": 2}]


def test_queries_over_references_answer_like_a_single_node(session: Session) -> None:
    _create_table_as(session)
    session.from_arrow(part(1), "other")
    for sql in (
        "select a.v, b.v as w from m a join m b on a.v = b.v + 1 where a.k = 2",
        "select m.v from m where m.k in (select k from m where v = 3)",
        "select k, v from m order by v limit 5",
        "select count(*) as n from m where v > (select avg(v) from m)",
        "select x.k from (select k from m union all select k from m) x where x.k < 3",
        "select m.k, count(*) as n from m left join other o on m.k = o.k group by m.k",
        "with c as (select * from m) select max(c.v) as v from c join c d on c.v = d.v group by c.k",
        "select datafusion.public.m.v from datafusion.public.m",
    ):
        assert_distributed_eq(session, sql)


def test_values_and_types_come_back_as_they_were(session: Session) -> None:
    """Types that Parquet has are read from the file, the others as they were before."""
    day = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
    columns: dict[str, pa.Array] = {
        "k": pa.array([1, None, 3, 4], pa.int32()),
        "u": pa.array([0, 2**64 - 1, None, 1], pa.uint64()),
        "f": pa.array([float("nan"), -0.0, None, float("inf")], pa.float64()),
        "s": pa.array(["", None, "ünï", "x" * 50], pa.string()),
        "sv": pa.array(["", None, "ünï", "x" * 50], pa.string_view()),
        "b": pa.array([b"", None, b"\xff\x00", b"y"], pa.binary()),
        "d": pa.array([Decimal("1.50"), None, Decimal("-9.99"), Decimal(0)], pa.decimal128(9, 2)),
        "t": pa.array([day, None, day, day], pa.timestamp("ns")),
        "z": pa.array([day, None, day, day], pa.timestamp("us", "Europe/Berlin")),
        "o": pa.array([True, None, False, True]),
    }
    session.from_arrow(pa.table(columns), "m")
    assert_distributed_eq(session, "select * from m")
    assert session.sql("select * from m").collect().schema == pa.table(columns).schema
    assert_distributed_eq(session, "select max(f) as f, min(f) as g, count(f) as n, count(s) as c from m where k > 0")
    words = pa.array(["a", "b", "a", None]).dictionary_encode()
    nested = pa.record_batch(columns | {"l": pa.array([[1], None, [], [2, None]]), "c": words})
    session.register_record_batches("nested", [[nested], [nested]])
    assert_distributed_eq(session, "select * from nested")


def test_what_can_be_said_of_the_table_only_is_said_of_it(session: Session) -> None:
    """A key lets a query name columns that it does not group by; a view has no key."""
    session.sql("create table m (k bigint primary key, v bigint)")
    session.sql("insert into m values (1, 2), (3, 4)")
    found = session.sql("select k, v, count(*) as n from m group by k").collect()
    assert sorted(found.to_pydict()["v"]) == [2, 4]
    kinds = session.sql("select table_type from information_schema.tables where table_name = 'm'").to_pydict()
    assert kinds == {"table_type": ["BASE TABLE"]}


def test_a_key_is_known_while_a_query_is_planned(session: Session) -> None:
    """Only the key tells that the subquery returns one row at most."""
    session.sql("create table m (k bigint primary key, v bigint)")
    session.sql("insert into m values (1, 2), (3, 4)")
    _from_arrow(session, "other")
    found = session.sql("select v, (select m.v from m where m.k = other.v) as z from other where v < 4")
    assert rows_of(found.collect()) == [(0, None), (1, 2), (2, None), (3, 4)]


def test_rows_in_memory_have_no_file_name(session: Session) -> None:
    """Nobody sees that they were written to a file."""
    _from_arrow(session)
    assert_distributed_eq(session, "select v from m where input_file_name() like '%parquet'", expect_error=True)


def _files(home: Path) -> list[str]:
    """Every file of rows, and every link to one."""
    homes = (home, *Path(tempfile.gettempdir()).glob("sparkfusion-*-table-links-*"))
    return sorted(str(path) for home in homes for path in home.rglob("*") if path.suffix in (".parquet", ".arrow"))


def _nested(session: Session, number: int) -> None:
    rows = part(number)
    session.from_arrow(rows.append_column("pair", pa.array([{"k": k} for k in rows["k"].to_pylist()])), "m")


@SEEN
@pytest.mark.parametrize("drop", ["drop table m", "create or replace table m as select 1 as k, 2 as v"])
def test_files_go_with_the_table_and_the_last_frame_that_reads_it(session: Session, tmp_path: Path, drop: str) -> None:
    before = _files(tmp_path)
    _from_arrow(session)
    frame = session.sql(COUNT)
    session.sql("create view seen as select sum(v) as s from m where k >= 0")
    rows = frame.collect().sort_by("k")
    written = _files(tmp_path)
    assert written != before
    session.sql(drop)
    gc.collect()
    assert frame.collect().sort_by("k") == rows
    assert session.table("seen").to_pydict() == {"s": [sum(part(0).column("v").to_pylist())]}
    assert _files(tmp_path) == written
    session.sql("drop view seen")
    del frame
    _wait_for_files(tmp_path, before)


@SEEN
def test_files_of_frames_without_a_name_go_with_them(session: Session, tmp_path: Path) -> None:
    before, names = _files(tmp_path), session.catalog().schema().names()
    frame = session.from_arrow(part(0))
    cached = frame.filter("v >= 0").cache()
    for each in (frame, cached):
        assert_distributed_like_single_node(each.select("k", "v"))
    assert len(_files(tmp_path)) > len(before)
    assert session.catalog().schema().names() == names
    del each, frame, cached
    _wait_for_files(tmp_path, before)


@SEEN
def test_files_of_rows_that_are_in_plans_go_with_the_next_query(session: Session, tmp_path: Path) -> None:
    for number in range(3):
        _nested(session, number)
        assert_distributed_like_single_node(session.sql("select pair, sum(v) as s from m group by pair"))
        session.deregister_table("m")
        (last, *_) = sorted(_files(tmp_path), key=lambda path: Path(path).stat().st_ctime_ns, reverse=True)
        _wait_for_files(tmp_path, [last])


def test_columns_of_rows_that_are_in_plans_are_not_mixed_up(session: Session) -> None:
    """The digest of a long list of columns once was that of its first ones."""
    rows = pa.record_batch({f"c{number:02d}": pa.array([[number]] * 10) for number in range(40)})
    session.register_record_batches("wide", [[rows], [rows]])
    for last in (38, 39):
        wanted = [f"c{number:02d}" for number in (*range(30), last)]
        frame = session.sql(f"select {', '.join(wanted)} from wide where c00[1] = 0")
        assert_distributed_like_single_node(frame)
        assert frame.collect()[-1].to_pylist() == [[last]] * 20


def _wait_for_files(home: Path, wanted: list[str]) -> None:
    """Until these are left: the threads of a query that has ended let go a moment later."""

    def are_left() -> bool:
        gc.collect()
        return _files(home) == wanted

    until(are_left, f"only {wanted} are left")
