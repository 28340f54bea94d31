"""Conditions that Spark evaluates for us: it keeps every row that DataFusion keeps, also where the two disagree."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType, UserDefinedType

from sparkfusion import Session
from sparkfusion.plan.distribute import ISOLATION_OPTIONS
from sparkfusion.plan.table_parts import TableHint, mark_tables
from sparkfusion.plan.table_reads import TableRead, tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.spark.filters import spark_filter
from sparkfusion.worker.task_context import session_config
from tests.behaviour.parts import DISTRIBUTED, rows_of
from tests.conftest import Connect
from tests.runners import ALL_ON_SPARK
from tests.spark.conf import settings

pytestmark = pytest.mark.long  # every kind of condition on every kind of column

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
COLUMNS = {
    "x": (pa.float64(), [0.0, -0.0, 1.5, -1.5, math.nan, NEGATIVE_NAN, math.inf, -math.inf]),
    "f": (pa.float32(), [0.0, -0.0, 0.1, -0.1, math.nan, NEGATIVE_NAN, 3e38, 1e-45]),
    "s": (pa.string(), ["", "a", "A", "a%", "a\nb", "ž", "\U0001f40e", "a\\b"]),
    "raw": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"ab", b"abc", b"b"]),
    "b": (pa.bool_(), [True, False, True, False, True, False, True, False]),
    "n": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**31, 2**53 + 1, 7]),
    "tiny": (pa.int8(), [0, 1, -1, 127, -128, 5, 6, 7]),
    "day": (
        pa.date32(),
        [date(*day) for day in ((1970, 1, 1), (1, 1, 1), (9999, 12, 31), (1582, 10, 4), *[(1900, 1, 1)] * 4)],
    ),
    "price": (
        pa.decimal128(38, 18),
        [Decimal(number) for number in ("0", "1.5", "-1.5", "0.1", "99999999999999999999", "1", "2", "3")],
    ),
    "at": (
        pa.timestamp("us", "America/New_York"),
        [datetime(2024, 11, 3, hour, 30, 0, 1, UTC) for hour in (4, 5, 6, 7)] + [datetime(1, 1, 2, tzinfo=UTC)] * 4,
    ),
    "clock": (
        pa.timestamp("us"),
        [datetime(2024, 3, 10, hour, 30, 0, 1) for hour in (1, 2, 3)] + [datetime(1, 1, 1)] * 4 + [datetime.max],
    ),
}  # fmt: skip
CONDITIONS = [
    *(
        f"x {op} {value}"
        for op in ("=", "!=", "<", "<=", ">", ">=")
        for value in ("0.0", "-0.0", "1.5", "'nan'::double")
    ),
    *(f"f {op} {value}::float" for op in ("=", "<", ">") for value in ("0.0", "0.1", "-0.1")),
    "x in (0.0, 1.5, 2.5, 3.5)",
    "x between -1.5 and 0.0 or s = 'ž'",
    *(f"s {op} '{value}'" for op in ("=", "!=", "<", ">=") for value in ("", "a", "a%", "ž", "\U0001f40e")),
    *(f"s {op} '{pattern}'" for op in ("like", "not like") for pattern in ("a%", "_", "%b", "a_b", "")),
    "s in ('a', 'A', 'ž', 'b')",
    "s not in ('a', 'A', 'ž', 'b')",
    *(f"raw {op} x'{value}'" for op in ("=", "<", ">") for value in ("80", "7f", "6162")),
    "b",
    "not b",
    "not (b and n > 0)",
    "not (b or s is null)",
    "b is null",
    "b is not null and n is not null",
    *(f"n {op} {value}" for op in ("=", "<", ">=") for value in (2**63 - 1, 2**53 + 1, 0)),
    "tiny > 5",
    "tiny in (1, 2, 127, -128)",
    *(f"day {op} date '{day}'" for op in ("=", "<", ">=") for day in ("1970-01-01", "1582-10-04", "9999-12-31")),
    *(f"price {op} {value}" for op in ("=", "<", ">") for value in ("1.5", "0.1", "99999999999999999999")),
    *(
        f"at {op} arrow_cast({value}, 'Timestamp(us, \"America/New_York\")')"
        for op in ("=", "<", ">=")
        for value in (1730611800000001, 1730615400000001, -62135510400000000)
    ),
    *(
        f"clock {op} arrow_cast({value}, 'Timestamp(us)')"
        for op in ("=", "<", ">")
        for value in (1710037800000001, 253402300799999999, -62135596800000000)
    ),
]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Each column's values, and a null; `id` is first."""
    made = {name: pa.array([*values, None], kind) for name, (kind, values) in COLUMNS.items()}
    return pa.table({"id": pa.array(range(9), pa.int32()), **made})


@pytest.fixture
def frame(spark: SparkSession, rows: pa.Table, tmp_path: Path) -> Iterator[DataFrame]:
    pq.write_table(rows, tmp_path / "rows.parquet")  # PySpark's own way of taking rows knows no wall clocks
    with settings(spark, session__timeZone="America/New_York"):
        yield spark.read.parquet(str(tmp_path / "rows.parquet"))


def asked(where: str, schema: pa.Schema, home: Path) -> TableRead:
    """What a query over a table of that schema asks of it."""
    home.mkdir()
    (home / "0").mkdir()
    (home / "0" / "0.arrow").write_bytes(b"-")
    context = SessionContext(session_config(ISOLATION_OPTIONS))
    context.register_arrow("t", str(home / "0"), schema=schema)
    root = decode(context.sql(f"select id from t where {where}").execution_plan().to_bytes(context))
    mark_tables(root, str(home), {0: TableHint("t", 1, 1)})
    (read,) = tables_read(root)
    return read


def test_spark_drops_no_row_that_datafusion_keeps(frame: DataFrame, rows: pa.Table, tmp_path: Path) -> None:
    """All conditions in one Spark job."""
    reads = [asked(where, rows.schema, tmp_path / str(number)) for number, where in enumerate(CONDITIONS)]
    assert [where for where, read in zip(CONDITIONS, reads, strict=True) if read.condition is None] == []
    columns = [F.col(name) for name in frame.columns]
    kept = [F.coalesce(spark_filter(read.condition, columns), F.lit(False)) for read in reads if read.condition]
    by_spark = {row[0]: row[1:] for row in frame.select(F.col("id"), *kept).collect()}
    context = SessionContext()
    context.register_record_batches("t", [rows.to_batches()])
    for number, where in enumerate(CONDITIONS):
        expected = set(context.sql(f"select id from t where {where}").to_pydict()["id"])
        found = {id for id, answers in by_spark.items() if answers[number]}
        assert expected <= found, where
        if not where.startswith(("x", "f")):
            assert expected == found, where


# ---- through a session


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect({**DISTRIBUTED, **ALL_ON_SPARK})


def test_rows_that_a_filter_drops_do_not_leave_spark(session: Session, spark: SparkSession) -> None:
    """A value that cannot be computed is in a row that nobody asks for."""
    trouble = F.when(F.col("id") > 10, F.raise_error(F.lit("computed"))).otherwise(F.lit("fine")).alias("s")
    session.register_spark("t", spark.range(0, 50, 1, 4).select("id", trouble))
    query = session.sql("select id, s from t where id < 3 and id % 2 = 0")
    assert rows_of(query.collect()) == [(0, "fine"), (2, "fine")]
    assert "│ from Spark: t where id < 3\n" in query.explain_text()
    assert '"t where id < 3"' in query.explain_text(format="json")


def test_a_limit_is_taken_of_every_partition(session: Session, spark: SparkSession) -> None:
    """Rows behind the first ones of a partition are not computed."""
    trouble = F.when(F.col("id") % 100 > 50, F.raise_error(F.lit("computed"))).otherwise(F.col("id"))
    session.register_spark("t", spark.range(0, 400, 1, 4).select("id", trouble.cast("long").alias("x")))
    query = session.sql("select x from t where id >= 200 limit 20")
    found = query.to_pydict()["x"]
    assert len(set(found)) == 20
    assert set(found) <= {*range(200, 220), *range(300, 320)}
    assert "│ from Spark: t where id >= 200 limit 20\n" in query.explain_text()
    assert session.sql("select count(x) as n from (select x from t limit 45)").to_pylist() == [{"n": 45}]


def test_a_char_column_is_compared_as_it_is(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Spark pads the literal that a CHAR column is compared with."""
    spark.sql(f"create table padded (c char(5), v varchar(5)) using parquet location '{tmp_path / 'padded'}'")
    try:
        spark.sql("insert into padded values ('abc', 'abc'), ('abd', 'abd')")
        session.register_spark("t", "padded")
        assert rows_of(session.sql("select c from t where c > 'abc'").collect()) == [("abc  ",), ("abd  ",)]
        assert rows_of(session.sql("select v from t where v = 'abc'").collect()) == [("abc",)]
    finally:
        spark.sql("drop table padded")


class Label(UserDefinedType):
    """A text to DataFusion; Spark compares it with nothing."""

    @classmethod
    def sqlType(cls) -> DataType:  # noqa: N802
        return StringType()

    @classmethod
    def module(cls) -> str:
        return __name__

    def serialize(self, obj: str) -> str:
        return obj

    def deserialize(self, datum: str) -> str:
        return datum


def test_a_column_of_a_users_type_is_compared_here(session: Session, spark: SparkSession) -> None:
    schema = StructType([StructField("n", IntegerType()), StructField("label", Label())])
    rows = [(1, "a"), (2, "b"), (3, "b")]
    session.register_spark("t", spark.createDataFrame(rows, schema, verifySchema=False))
    assert rows_of(session.sql("select n from t where label = 'b' and n > 0 limit 5").collect()) == [(2,), (3,)]


def test_columns_that_differ_in_case_only_are_told_apart(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3).toDF("a").crossJoin(spark.range(10, 12).toDF("A")))
    assert rows_of(session.sql('select a, "A" from t where "A" = 11 and a > 0').collect()) == [(1, 11), (2, 11)]
