"""INT96 timestamps, which Spark writes by default: DataFusion reads the instants that Spark reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session
from tests.conftest import Connect
from tests.spark.catalog_rows import MICROS, assert_like_spark, database, how, rows_of
from tests.spark.conf import settings

pytestmark = pytest.mark.long  # one kind of column of one kind of table

BY_DATAFUSION = "read by DataFusion"
MOMENTS = [
    "0001-01-01 00:00:00",
    "1582-10-04 23:59:59.999999",
    "1582-10-10 12:00:00",  # a day that the old calendar does not have
    "1582-10-15 00:00:00",
    "1677-09-21 00:12:43.145224",  # one microsecond before nanoseconds begin
    "1900-01-01 00:00:00.000001",
    "1969-12-31 23:59:59.999999",
    "2024-02-29 23:59:59",
    "2262-04-11 23:47:16.854776",  # one microsecond after nanoseconds end
    "9999-12-31 23:59:59.999999",
]
ROWS = ", ".join(f"({number}, timestamp'{text} UTC')" for number, text in enumerate(MOMENTS)) + ", (10, null)"
NESTED = "array(at, null) as list, named_struct('a', at, 'b', array(named_struct('c', at))) as nested"


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with database(spark, "sf_int96", tmp_path_factory.mktemp("int96")) as name:
        rows = f"select /*+ repartition(3) */ * from values {ROWS} as t(id, at)"
        spark.sql(f"create table {name}.flat using parquet as {rows}")
        spark.sql(
            f"create table {name}.nested using parquet as select id, {NESTED}, timestamp_ntz'1600-01-01' as wall "
            f"from ({rows})"
        )
        spark.sql(f"create table {name}.parts (at timestamp, p int) using parquet partitioned by (p)")
        spark.sql(f"insert into {name}.parts select at, id % 3 from ({rows})")
        spark.sql(f"create table {name}.mixed using parquet as {rows}")
        with settings(spark, parquet__outputTimestampType="TIMESTAMP_MICROS"):
            spark.sql(f"insert into {name}.mixed {rows}")
        with settings(spark, parquet__int96RebaseModeInWrite="LEGACY"):
            spark.sql(f"create table {name}.legacy using parquet as {rows}")
        yield name


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> Session:
    return connect_shared({"sparkfusion.bytes_per_partition": 1})


def test_spark_writes_int96_by_default(spark: SparkSession, db: str) -> None:
    """Else these tests are about nothing."""
    assert spark.conf.get(MICROS) == "INT96"
    files = spark.table(f"{db}.flat").inputFiles()
    footers = [pq.read_metadata(file.removeprefix("file:").replace("///", "/")) for file in files]
    assert {footer.schema.column(1).physical_type for footer in footers} == {"INT96"}


@pytest.mark.parametrize(("table", "zone"), [("flat", "America/New_York"), ("parts", "UTC"), ("mixed", "Asia/Tokyo")])
def test_datafusion_reads_the_instants_that_spark_reads(
    session: Session, spark: SparkSession, db: str, table: str, zone: str
) -> None:
    with settings(spark, session__timeZone=zone):
        assert how(session, f"{db}.{table}").endswith(BY_DATAFUSION)
        answer = assert_like_spark(session, spark, f"select * from {db}.{table}")
        assert answer["at"].null_count == answer.num_rows // len(MOMENTS)


def test_instants_inside_of_structs_and_arrays(session: Session, spark: SparkSession, db: str) -> None:
    ours = "id, list[1] as one, list[2] as two, nested['a'] as a, nested['b'][1]['c'] as c, wall"
    of_spark = "id, list[0] as one, list[1] as two, nested.a, nested.b[0].c, wall"
    assert how(session, f"{db}.nested").endswith(BY_DATAFUSION)
    answer = session.sql(f"select {ours} from {db}.nested").collect()
    assert rows_of(answer) == rows_of(spark.sql(f"select {of_spark} from {db}.nested").toArrow())
    assert all(answer.schema.field(name).type.tz is not None for name in ("one", "two", "a", "c"))


@pytest.mark.parametrize("condition", ["<", "=", ">=", "is null or at >"])
def test_conditions_on_timestamps_leave_out_no_row(
    session: Session, spark: SparkSession, db: str, condition: str
) -> None:
    """The files have no statistics of INT96 columns, or statistics that nobody can use."""
    for moment in (MOMENTS[2], MOMENTS[9]):
        text = f"select at from {db}.flat where at {condition} timestamp'{moment}'"
        assert rows_of(session.sql(text, dialect="spark").collect()) == rows_of(spark.sql(text).toArrow())


def test_groups_and_joins_of_timestamps(session: Session, spark: SparkSession, db: str) -> None:
    query = f"""
        select a.at, count(*) as n, min(b.at) as first, max(m.at) as last
        from {db}.flat a join {db}.parts b on a.at = b.at join {db}.mixed m on b.at = m.at group by a.at
    """
    assert "INT96" not in session.sql(query).explain_text()
    assert_like_spark(session, spark, query)


def test_an_older_calendar_comes_through_spark(session: Session, spark: SparkSession, db: str) -> None:
    assert "'at' may be in another calendar" in how(session, f"{db}.legacy")
    assert_like_spark(session, spark, f"select * from {db}.legacy")


def write_int96(rows: pa.Table, directory: Path) -> None:
    """As programs without Arrow write it."""
    pq.write_table(rows, directory / "a.parquet", use_deprecated_int96_timestamps=True, store_schema=False)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"parquet__int96RebaseModeInRead": "CORRECTED"}, None),
        ({"parquet__int96RebaseModeInRead": "LEGACY"}, "'at' may be in another calendar"),
        ({"parquet__int96TimestampConversion": "true"}, "int96TimestampConversion is true"),
    ],
)
def test_files_of_other_programs_are_read_as_sparks_settings_say(
    session: Session, spark: SparkSession, db: str, tmp_path: Path, changed: dict[str, str], why: str | None
) -> None:
    at = pa.array([-62135596800000000, -1, None, 253402300799999999], pa.timestamp("us", "UTC"))
    fine = pa.array([-1, -1001, 1999, None], pa.timestamp("ns", "UTC"))  # parts of microseconds
    write_int96(pa.table({"at": at, "fine": fine}), tmp_path)
    spark.sql(f"create table {db}.foreign_rows (at timestamp, fine timestamp) using parquet location '{tmp_path}'")
    try:
        with settings(spark, session__timeZone="America/New_York", **changed):
            said = how(session, f"{db}.foreign_rows")
            assert (BY_DATAFUSION if why is None else why) in said
            assert_like_spark(session, spark, f"select * from {db}.foreign_rows")
    finally:
        spark.sql(f"drop table {db}.foreign_rows")


def test_int96_as_a_timestamp_without_zone_comes_through_spark(
    session: Session, spark: SparkSession, db: str, tmp_path: Path
) -> None:
    write_int96(pa.table({"at": pa.array([0, -1], pa.timestamp("us", "UTC"))}), tmp_path)
    spark.sql(f"create table {db}.walls (at timestamp_ntz) using parquet location '{tmp_path}'")
    try:
        assert "'at' is timestamp[us, tz=UTC] in a file, and timestamp[us] in the catalog" in how(
            session, f"{db}.walls"
        )
        assert_like_spark(session, spark, f"select * from {db}.walls")
    finally:
        spark.sql(f"drop table {db}.walls")


def test_int96_with_a_schema_of_arrow_comes_through_spark(
    session: Session, spark: SparkSession, db: str, tmp_path: Path
) -> None:
    """DataFusion takes the unit from that schema, and rounds nanoseconds before 1970 up. Spark rounds down."""
    rows = pa.table({"at": pa.array([-1001, 1999], pa.timestamp("ns", "UTC"))})
    pq.write_table(rows, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    spark.sql(f"create table {db}.of_arrow (at timestamp) using parquet location '{tmp_path}'")
    try:
        assert "'at' is timestamp[ns] in a file" in how(session, f"{db}.of_arrow")
        answer = assert_like_spark(session, spark, f"select * from {db}.of_arrow")
        assert sorted(answer["at"].cast(pa.int64()).to_pylist()) == [-2, 1]
    finally:
        spark.sql(f"drop table {db}.of_arrow")
