"""Values that come with a file instead of from it, as in a Hive layout: typed, filtered, joined."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import FileUnit, Session, SparkfusionError, UserError
from tests.conftest import Connect
from tests.suites.feeds import ALL_RUN_LOCALLY, NOT_LOCAL, ONE_STORE, Scripted, assert_answers

pytestmark = ONE_STORE

SAME_PLANS = "values stand in plans, which are the same on every runner; there some of these are enough"
BODY = pa.schema([("v", pa.int64()), ("s", pa.string())])
COLUMNS = [("p", pa.int32()), ("q", pa.string()), ("d", pa.date32())]
VALUES: list[tuple[int | None, str | None, datetime.date | None]] = [
    (1, "a", datetime.date(2024, 1, 1)),
    (1, "b b", datetime.date(2024, 1, 2)),
    (2, "", None),
    (None, None, datetime.date(2024, 1, 2)),
    (2, "a/%#'é", datetime.date(1969, 12, 31)),
]


def body_of(number: int) -> pa.Table:
    values = [number * 10 + i for i in range(4)]
    return pa.table({"v": values, "s": [None if v % 3 == 0 else f"s{v % 5}" for v in values]}, schema=BODY)


def whole() -> pa.Table:
    parts = []
    for number, values in enumerate(VALUES):
        part = body_of(number)
        for (name, type_), value in zip(COLUMNS, values, strict=True):
            part = part.append_column(name, pa.array([value] * part.num_rows, type_))
        parts.append(part)
    return pa.concat_tables(parts)


WHOLE = whole()


@pytest.fixture(scope="module", params=[False, True], ids=["", "pushdown"])
def fed(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Session:
    session, tmp_path = connect_shared({"datafusion.execution.target_partitions": 3}), tmp_path_factory.mktemp("fed")
    session.config["datafusion.execution.parquet.pushdown_filters"] = request.param
    units = []
    for number, values in enumerate(VALUES):
        pq.write_table(body_of(number), tmp_path / f"{number}.parquet", row_group_size=2)
        names = dict(zip([name for name, _ in COLUMNS], values, strict=True))
        units.append(FileUnit(str(tmp_path / f"{number}.parquet"), partition_values=names))
    session.register_feed("f", Scripted(units), schema=BODY, format="parquet", partition_columns=COLUMNS, tasks=2)
    return session


QUERIES = {
    "all": "select * from f",
    "only them": "select p, q, d from f",
    "one of them": "select q from f",
    "other order": "select d, v, p, s, q from f",
    "counted": "select count(*) as n from f",
    "null": "select v from f where p is null",
    "not null": "select v, q from f where q is not null",
    "number": "select v, p from f where p = 1",
    "text": "select v from f where q = 'b b'",
    "empty text": "select v, q from f where q = ''",
    "date": "select v, d from f where d = date '2024-01-02'",
    "range of dates": "select v from f where d >= date '1970-01-01' and v > 1",
    "with the body": "select v, s from f where p = 1 and s = 's1'",
    "either with the body": "select v, p from f where p = 2 or s = 's1'",
    "between them": "select v from f where p < v and q <> s",
    "in a list": "select v from f where p in (2, 3) and q in ('', 'x')",
    "computed": "select p + v as x, upper(q) as u, d + interval '1 day' as e from f",
    "grouped": "select p, q, sum(v) as x, count(s) as n from f group by p, q",
    "sorted": "select p, v from f order by p nulls first, v desc",
    "joined": "select a.v, b.v as w from f a join f b on a.p = b.p and a.d < b.d",
    "limited": "select count(*) as n from (select * from f where p = 1 limit 3) x",
    "nothing left": "select v from f where p = 99",
    "window": "select v, row_number() over (partition by p order by v) as n from f",
    "union": "select v, p from f where p = 1 union all select v, p from f where q = 'a/%#''é'",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_partition_columns_are_columns_like_others(fed: Session, query: str) -> None:
    assert_answers(fed, query, f=WHOLE)


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
def test_partition_columns_on_every_runner(fed: Session) -> None:
    for name in ("all", "date", "with the body"):
        assert_answers(fed, QUERIES[name], f=WHOLE)


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "int8": (pa.int8(), -3),
    "int64": (pa.int64(), 2**60),
    "uint16": (pa.uint16(), 60_000),
    "float": (pa.float64(), -1.5),
    "bool": (pa.bool_(), True),
    "string": (pa.string(), "null"),
    "large_string": (pa.large_string(), "x"),
    "string_view": (pa.string_view(), "x"),
    "category": (pa.dictionary(pa.uint16(), pa.string()), "x"),
    "date": (pa.date32(), datetime.date(2024, 2, 29)),
    "timestamp": (pa.timestamp("us"), datetime.datetime(2024, 2, 29, 23, 59, 59, 5)),
    "timestamp in a zone": (pa.timestamp("us", "UTC"), datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)),
    "decimal": (pa.decimal128(12, 3), Decimal("1234.500")),
    "binary": (pa.binary(), b"\x00x"),
    "text for a number": (pa.int32(), "007"),
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type(session: Session, tmp_path: Path, kind: str) -> None:
    """And NULL of every type, in the same feed."""
    type_, value = TYPES[kind]
    pq.write_table(body_of(0), tmp_path / "0.parquet")
    path = str(tmp_path / "0.parquet")
    units = [FileUnit(path, partition_values={"p": value}), FileUnit(path, partition_values={"p": None})]
    session.register_feed("f", Scripted(units), schema=BODY, format="parquet", partition_columns=[("p", type_)])
    found = session.sql("select p, v from f").collect()
    assert found.schema.field("p").type == type_
    expected = 7 if value == "007" else value
    assert sorted(found.column("p").to_pylist(), key=str) == sorted([expected] * 4 + [None] * 4, key=str)


def test_columns_of_the_schema_may_be_named(session: Session, tmp_path: Path) -> None:
    """Wherever they stand in the schema, they are the last columns of the table."""
    pq.write_table(body_of(0), tmp_path / "0.parquet")
    schema = pa.schema([("p", pa.int32()), *BODY])
    units = [FileUnit(str(tmp_path / "0.parquet"), partition_values={"p": 5})]
    session.register_feed("f", Scripted(units), schema=schema, format="parquet", partition_columns=["p"])
    assert session.table("f").schema().names == ["v", "s", "p"]
    assert session.sql("select distinct p from f").to_pylist() == [{"p": 5}]


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("format", ["csv", "json", "arrow"])
def test_other_formats_have_them_too(session: Session, tmp_path: Path, format: str) -> None:
    from tests.behaviour.feeds.test_files import WRITERS

    WRITERS[format](body_of(1), tmp_path / f"0.{format}")
    units = [FileUnit(str(tmp_path / f"0.{format}"), partition_values={"p": p}) for p in (1, 2)]
    session.register_feed("f", Scripted(units), schema=BODY, format=format, partition_columns=[("p", pa.int32())])
    parts = [body_of(1).append_column("p", pa.array([p] * 4, pa.int32())) for p in (1, 2)]
    for query in ("select * from f", "select v from f where p = 2", "select p, count(*) as n from f group by p"):
        assert_answers(session, query, f=pa.concat_tables(parts))


def test_a_unit_without_a_value_is_refused(session: Session, tmp_path: Path) -> None:
    pq.write_table(body_of(0), tmp_path / "0.parquet")
    units = [FileUnit(str(tmp_path / "0.parquet"), partition_values={"q": "x"})]
    session.register_feed("f", Scripted(units), schema=BODY, format="parquet", partition_columns=COLUMNS)
    with pytest.raises(UserError, match=r"0\.parquet' of table 'f' has no value of p, d"):
        session.sql("select v from f").collect()


def test_a_value_that_does_not_fit_is_refused(session: Session, tmp_path: Path) -> None:
    pq.write_table(body_of(0), tmp_path / "0.parquet")
    units = [FileUnit(str(tmp_path / "0.parquet"), partition_values={"p": "a lot"})]
    session.register_feed("f", Scripted(units), schema=BODY, format="parquet", partition_columns=[("p", pa.int32())])
    with pytest.raises(SparkfusionError, match=r"'a lot' is not a valid int32"):
        session.sql("select v from f").collect()
