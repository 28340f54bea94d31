"""`verify` on a real session: it proves a real query, and finds a fault put into one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import FeedContext, FileUnit, WorkUnitFeedProvider
from sparkfusion.errors import VerificationError
from sparkfusion.session.session import Session, connect
from sparkfusion.verify import Outcome, assert_distributed_eq, verify_query
from sparkfusion.verify.own_session import OwnDataFrame

GROUPED = "select k, count(*) as n, sum(x) as s from t group by k order by k"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    for part in range(3):
        rows = range(part * 100, part * 100 + 100)
        table = pa.table({"id": rows, "k": [row % 7 for row in rows], "x": [row / 3 for row in rows]})
        (tmp_path / "t").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "t" / f"{part}.parquet")
    settings = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 3}
    with connect(config=settings) as session:
        session.register_parquet("t", str(tmp_path / "t"))
        yield session


@pytest.mark.parametrize(
    "sql",
    [
        GROUPED,
        "select id, x from t where k = 3",
        "select a.id, b.x from t a join t b on a.id = b.k order by a.id, b.x desc",
        "select k, x from t order by k limit 5",
    ],
)
def test_distributed_queries_are_proved(session: Session, sql: str) -> None:
    result = assert_distributed_eq(session, sql)
    assert result.tasks >= 2
    assert result.stages >= 1


@pytest.mark.parametrize(("path", "fails"), [("0.parquet", False), ("missing.parquet", True)])
def test_no_single_node_reads_a_feed(session: Session, tmp_path: Path, path: str, fails: bool) -> None:
    class Files(WorkUnitFeedProvider):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
            yield FileUnit(tmp_path / "t" / path)

    session.register_feed("fed", Files(), schema=session.table("t").schema(), format="parquet")
    result = verify_query(session, "select count(*) as n from fed", reproducer_dir=tmp_path / "found")
    assert result.outcome is Outcome.NOT_COMPARABLE
    assert "fed is a feed" in (result.reason or "")
    assert ("fails with" in (result.reason or "")) is fails
    assert (result.legs[2].error is not None) is fails
    assert not (tmp_path / "found").exists()
    with pytest.raises(VerificationError, match="fed is a feed") as raised:
        assert_distributed_eq(session, "select count(*) as n from fed")
    assert "compare_tables" in (raised.value.hint or "")


def test_a_query_over_nothing_is_not_distributed(session: Session) -> None:
    assert verify_query(session, "select 1 as one").outcome is Outcome.NOT_DISTRIBUTED


def test_error_parity(session: Session) -> None:
    assert_distributed_eq(session, "select id / (k - k) as z from t", expect_error=True)


def test_a_fault_is_found_and_leaves_a_reproducer(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = OwnDataFrame.collect
    monkeypatch.setattr(OwnDataFrame, "collect", lambda verified: collect(verified).slice(1))
    with pytest.raises(VerificationError, match="wrong answer in the distributed leg") as raised:
        assert_distributed_eq(session, GROUPED, reproducer_dir=tmp_path / "failures")
    assert "missing row: k=0, n=43" in str(raised.value)
    (made,) = (tmp_path / "failures").iterdir()
    assert (made / "explain.txt").stat().st_size > 100
    assert "bytes_per_partition" in (made / "config.json").read_text()


def test_other_tied_rows_of_a_limit_are_right(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "select k, id from t order by k limit 2"
    tied = session.sql("select k, id from t where k = 0 order by id desc limit 2").to_datafusion().to_arrow_table()
    collect = OwnDataFrame.collect
    monkeypatch.setattr(OwnDataFrame, "collect", lambda verified: tied if collect(verified) else None)
    result = verify_query(session, sql)
    assert result.outcome is Outcome.PASSED, result.describe()
    assert result.comparison is not None
    assert "equal sort keys at the LIMIT" in result.comparison.notes[0]
