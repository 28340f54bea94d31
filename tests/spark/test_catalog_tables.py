"""Tables of Spark's catalog by name: the rows that Spark finds, read by DataFusion only where it reads them equally."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session, UserError
from sparkfusion.plan.wire import decode, file_scan_conf, walk
from tests.conftest import Connect
from tests.runners import some_first
from tests.spark.catalog_rows import MICROS, assert_like_spark, database, how, rows_of
from tests.spark.conf import settings

BY_DATAFUSION = "read by DataFusion"
SPLIT = {"sparkfusion.bytes_per_partition": 1}
COLUMNS = """
    id, cast(id as int) as i, cast(id as smallint) as h, cast(id as tinyint) as t, id % 2 = 0 as flag,
    cast(id as float) / 3 as f, cast(id as double) / 3 as d, if(id % 4 = 0, null, concat('näme ', id)) as name,
    cast(concat('b', id) as binary) as bytes, cast(id as decimal(9, 2)) as d9, cast(id as decimal(18, 3)) as d18,
    cast(id as decimal(38, 6)) as d38, date_add(date'1500-01-01', cast(id * 400 as int)) as day,
    timestamp_micros(id * 1000000007 - 20000000000000000) as at,
    cast(timestamp_micros(id) as timestamp_ntz) as wall,
    array(id, null) as list, named_struct('a', id, 'b', named_struct('c', string(id))) as nested
"""


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with database(spark, "sf_tables", tmp_path_factory.mktemp("tables")) as name:
        spark.conf.set(MICROS, "TIMESTAMP_MICROS")  # test_catalog_int96.py is about the default
        spark.sql(f"create table {name}.every using parquet as select {COLUMNS} from range(0, 50, 1, 3)")
        spark.sql(f"create table {name}.zoned using parquet as select id, timestamp_seconds(id) as at from range(9)")
        spark.conf.unset(MICROS)
        spark.sql(f"create table {name}.maps using parquet as select map('a', id) as m from range(3)")
        spark.sql(f"create table {name}.padded (c char(4), v varchar(4)) using parquet")
        spark.sql(f"insert into {name}.padded values ('a', 'b')")
        spark.sql(f"create table {name}.varied (v varchar(4)) using parquet")
        spark.sql(f"create table {name}.filled using parquet as select id from range(2)")
        spark.sql(f"alter table {name}.filled add column more int default 7")
        spark.sql(f"create table {name}.grown using parquet as select id from range(2)")
        spark.sql(f"alter table {name}.grown add column more int")
        spark.sql(f"insert into {name}.grown values (5, 6)")
        with settings(spark, parquet__datetimeRebaseModeInWrite="LEGACY"):
            spark.sql(f"create table {name}.legacy using parquet as select date'1500-03-03' as day")
        spark.sql(
            f"create table {name}.parts (n bigint, p int, q string, r date) using parquet partitioned by (p, q, r)"
        )
        spark.sql(
            f"insert into {name}.parts select id, if(id = 5, null, id % 3), if(id % 4 = 0, null, concat('q ', id % 2)),"
            " date_add(date'2020-02-28', cast(id % 2 as int)) from range(12)"
        )
        spark.sql(f"create table {name}.odd_parts (n bigint, q string) using parquet partitioned by (q)")
        spark.sql(f"insert into {name}.odd_parts values (1, 'a/b=c%d'), (2, ''), (3, null), (4, 'null')")
        spark.sql(f"create table {name}.no_rows (n bigint, p int) using parquet partitioned by (p)")
        spark.sql(f"create table {name}.buckets (n bigint, k int) using parquet clustered by (k) into 3 buckets")
        spark.sql(f"insert into {name}.buckets select id, id % 5 from range(20)")
        spark.sql(f"create table {name}.lines (a int, b string) using csv")
        spark.sql(f"insert into {name}.lines values (1, ''), (2, null), (3, 'x')")
        spark.sql(f"create table {name}.documents (a int, b string) using json")
        spark.sql(f"insert into {name}.documents values (1, ''), (2, null)")
        spark.sql(f"create table {name}.orcs using orc as select id from range(3)")
        spark.sql(f"create view {name}.seen as select id, name from {name}.every where id < 9")
        yield name


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> Session:
    return connect_shared(SPLIT)


@pytest.fixture(scope="module")
def through_spark(connect_shared: Connect) -> Session:
    return connect_shared({**SPLIT, "sparkfusion.spark_catalog": "spark"})


NATIVE = ("every", "grown", "parts", "no_rows", "buckets", "zoned")
THROUGH_SPARK = {
    "maps": "'m' is map<",
    "padded": "Spark computes columns when it reads it",
    "varied": "'v' is VARCHAR",
    "filled": "'more' has CURRENT_DEFAULT, EXISTS_DEFAULT",
    "legacy": "'day' may be in another calendar",
    "odd_parts": "the path of a file has characters that need escapes",
    "lines": "its format is csv",
    "documents": "its format is json",
    "orcs": "its format is orc",
    "seen": "it is a view",
}


@pytest.mark.parametrize("table", some_first({table: table for table in NATIVE}, NATIVE[:3]))
def test_datafusion_reads_a_table_that_it_reads_as_spark_does(
    session: Session, through_spark: Session, spark: SparkSession, db: str, table: str
) -> None:
    assert how(session, f"{db}.{table}").endswith(BY_DATAFUSION)
    assert_like_spark(session, spark, f"select * from {db}.{table}")
    assert how(through_spark, f"{db}.{table}") == "through Spark, because sparkfusion.spark_catalog is spark"
    assert_like_spark(through_spark, spark, f"select * from {db}.{table}")


@pytest.mark.parametrize("table", THROUGH_SPARK)
def test_spark_reads_what_datafusion_might_read_differently(
    session: Session, spark: SparkSession, db: str, table: str
) -> None:
    said = how(session, f"{db}.{table}")
    assert said.startswith("through Spark, because ")
    assert THROUGH_SPARK[table] in said
    assert_like_spark(session, spark, f"select * from {db}.{table}")


@pytest.mark.parametrize("operator", ["<", "=", ">"])
def test_instants_are_compared_in_the_zone_of_spark(
    session: Session, spark: SparkSession, db: str, operator: str
) -> None:
    with settings(spark, session__timeZone="America/New_York"):
        instant = """arrow_cast(4000000, 'Timestamp(Microsecond, Some("UTC"))')"""
        rows = session.sql(f"select * from {db}.zoned where at {operator} {instant}")
        expected = spark.table(f"{db}.zoned").where(f"at {operator} timestamp_seconds(4)").toArrow()
        assert rows_of(rows.collect()) == rows_of(expected)
        assert str(rows.schema().field("at").type) == "timestamp[us, tz=America/New_York]"


def test_tasks_read_only_the_partitions_that_a_query_needs(session: Session, spark: SparkSession, db: str) -> None:
    query = f"select n, q from {db}.parts where p = 1 and q is not null"
    graph = session.sql(query).distribution().graph
    assert graph is not None
    confs = [file_scan_conf(node) for stage in graph.stages for node in walk(decode(stage.plan))]
    files = [file.path for conf in confs if conf is not None for group in conf.file_groups for file in group.files]
    assert len(files) == 3  # of twelve
    assert all("/p=1/q=q " in file for file in files)  # and no links of the driver, which other machines do not have
    assert_like_spark(session, spark, query)


@pytest.mark.long
def test_null_partitions_and_joins_of_both_kinds(session: Session, spark: SparkSession, db: str) -> None:
    query = f"""
        select p, count(*) as n, sum(e.id) as s, max(name) as name
        from {db}.parts left join {db}.every e on n = e.id left join {db}.lines on a = p group by p
    """
    assert_like_spark(session, spark, query)


def test_names_mean_what_they_mean_to_spark(session: Session, spark: SparkSession, db: str) -> None:
    spark.sql(f"create or replace temporary view sf_view as select id from {db}.every where id < 3")
    spark.sql("create or replace global temporary view sf_global as select 1 as one")
    try:
        assert session.sql("select sum(id) as s from SF_VIEW").to_pydict() == {"s": [3]}
        assert session.sql("select * from global_temp.sf_global").to_pydict() == {"one": [1]}
        assert session.sql(f"select count(*) as n from spark_catalog.{db}.every").to_pydict() == {"n": [50]}
        session.sql(f"use {db} -- of this test")
        assert spark.catalog.currentDatabase() == db
        assert session.sql("select count(*) as n from every").to_pydict() == {"n": [50]}
        assert session.table("every").count() == 50
        session.sql("USE DATABASE default;")
        with pytest.raises(UserError, match=r"'datafusion\.public\.every' not found(.|\n)*Spark's catalog has no such"):
            session.sql("select * from every")
    finally:
        spark.sql("use default")
        spark.catalog.dropTempView("sf_view")
        spark.catalog.dropGlobalTempView("sf_global")


@pytest.mark.long
def test_another_catalog_is_found_by_three_parts(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    system: Any = spark.sparkContext._jvm
    system.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    for name, value in {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": "jdbc:derby:memory:sf_catalog;create=true",
        ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    }.items():
        spark.conf.set(f"spark.sql.catalog.sf_jdbc{name}", value)
    spark.sql("create table sf_jdbc.`APP`.`People` (id int, name string)")
    spark.sql("insert into sf_jdbc.`APP`.`People` values (1, 'a'), (2, 'b')")
    try:
        query = 'select * from sf_jdbc."APP"."People" where id > 1'
        assert session.sql(query).to_pylist() == [{"id": 2, "name": "b"}]
        assert "because its catalog has a reader of its own" in session.sql(query).explain_text()
        with pytest.raises(UserError, match="cannot overwrite table"):
            session.sql(query).write_spark_table("sf_jdbc.`APP`.`People`", mode="overwrite")
    finally:
        spark.sql("drop table sf_jdbc.`APP`.`People`")


def test_a_table_of_the_session_wins(connect: Connect, spark: SparkSession, db: str) -> None:
    session = connect(SPLIT)
    session.sql(f"create schema {db}")
    session.sql(f"create table {db}.every as select 'mine' as whose")
    assert session.sql(f"select * from {db}.every").to_pylist() == [{"whose": "mine"}]
    assert session.sql(f"select count(*) as n from {db}.every, {db}.grown").to_pydict() == {"n": [3]}
    assert session.catalog().schema(db).names() == {"every"}


def test_a_query_sees_what_spark_has_written_before_it(session: Session, spark: SparkSession, db: str) -> None:
    count = f"select count(*) as n from {db}.changing"
    spark.sql(f"create table {db}.changing using parquet as select id from range(3)")
    assert session.sql(count).to_pydict() == {"n": [3]}
    spark.sql(f"insert into {db}.changing values (9)")
    assert session.sql(count).to_pydict() == {"n": [4]}
    spark.sql(f"insert overwrite {db}.changing values (1), (2)")
    before = session.sql(count)
    assert before.to_pydict() == {"n": [2]}
    spark.sql(f"alter table {db}.changing add column more string")
    spark.sql(f"insert overwrite {db}.changing values (1, 'x')")
    assert session.sql(f"select * from {db}.changing").to_pylist() == [{"id": 1, "more": "x"}]
    with pytest.raises(UserError, match=f"files of table '{db}.changing' were deleted(.|\n)*create the query again"):
        before.collect()
    spark.sql(f"drop table {db}.changing")
    with pytest.raises(UserError, match=f"'datafusion.{db}.changing' not found"):
        session.sql(count)


@pytest.mark.long
def test_only_files_that_the_catalog_lists_are_read(
    session: Session, spark: SparkSession, db: str, tmp_path: Path
) -> None:
    """A partition in another place, and files that are hidden or in no partition of the catalog."""
    table = f"{db}.scattered"
    spark.sql(f"create table {table} (n bigint, p int) using parquet partitioned by (p) location '{tmp_path}/home'")
    spark.sql(f"insert into {table} values (1, 1), (2, 2)")
    for hidden in ("_later", ".half", "p=1/_x", "p=9"):
        (tmp_path / "home" / hidden).mkdir()
        pq.write_table(pa.table({"n": [99]}), tmp_path / "home" / hidden / "part.parquet")
    assert how(session, table) == f"2 Parquet files, {BY_DATAFUSION}"
    assert sorted(assert_like_spark(session, spark, f"select n from {table}")["n"].to_pylist()) == [1, 2]
    spark.sql(f"alter table {table} add partition (p = 10) location '{tmp_path}/home/p=2'")
    assert "two partitions are in the same directory" in how(session, table)
    assert {"n": 2, "p": 10} in assert_like_spark(session, spark, f"select * from {table}").to_pylist()
    spark.sql(f"alter table {table} drop partition (p = 10)")
    (tmp_path / "home" / "p=7").mkdir()
    pq.write_table(pa.table({"n": [7]}), tmp_path / "home" / "p=7" / "part.parquet")
    spark.sql(f"alter table {table} add partition (p = 8) location '{tmp_path}/home/p=7'")
    assert "whose name does not contain the partition's values" in how(session, table)
    assert {"n": 7, "p": 8} in assert_like_spark(session, spark, f"select * from {table}").to_pylist()
    spark.sql(f"drop table {table}")


FILES = {
    "other spelling": (pa.table({"ID": [1]}), "id bigint", "'id' is called 'ID' in a file"),
    "other type": (pa.table({"id": pa.array([1], pa.int32())}), "id bigint", "'id' is int32 in a file"),
    "milliseconds": (pa.table({"at": pa.array([1], pa.timestamp("ms", "UTC"))}), "at timestamp", "'at' is timestamp"),
    "no zone": (pa.table({"at": pa.array([1], pa.timestamp("us"))}), "at timestamp_ltz", "'at' is timestamp[us]"),
    "other precision": (
        pa.table({"d": pa.array([1], pa.decimal128(9, 2))}),
        "d decimal(12, 2)",
        "'d' is decimal128(9, 2) in a file",
    ),
    "less in a struct": (pa.table({"s": [{"a": 1}]}), "s struct<a: bigint, b: bigint>", "'s' is struct<"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_of_another_program_is_compared_with_the_catalog(
    session: Session, spark: SparkSession, db: str, tmp_path: Path, case: str
) -> None:
    rows, columns, why = FILES[case]
    pq.write_table(rows, tmp_path / "rows.parquet")
    spark.sql(f"create table {db}.foreign_rows ({columns}) using parquet location '{tmp_path}'")
    try:
        assert why in how(session, f"{db}.foreign_rows")
        assert_like_spark(session, spark, f"select * from {db}.foreign_rows")
    finally:
        spark.sql(f"drop table {db}.foreign_rows")


def test_cached_tables_and_settings_that_change_reading_go_through_spark(
    session: Session, spark: SparkSession, db: str
) -> None:
    spark.sql(f"cache table {db}.grown")
    assert "because Spark has it in its cache" in how(session, f"{db}.grown")
    spark.sql(f"uncache table {db}.grown")
    with settings(spark, files__ignoreMissingFiles="true"):
        assert "spark.sql.files.ignoreMissingFiles is on" in how(session, f"{db}.grown")
    assert how(session, f"{db}.grown").endswith(BY_DATAFUSION)


def test_a_table_that_spark_cannot_read_is_an_error_with_its_name(
    session: Session, spark: SparkSession, db: str
) -> None:
    spark.sql(f"create table {db}.source using parquet as select 1 as id")
    spark.sql(f"create view {db}.broken as select id from {db}.source")
    spark.sql(f"drop table {db}.source")
    try:
        with pytest.raises(UserError, match=f"Spark refuses to read table '{db}.broken': (.|\n)*{db}`.`source"):
            session.sql(f"select * from {db}.broken")
    finally:
        spark.sql(f"drop view {db}.broken")
    with pytest.raises(UserError, match=f"cannot write to '{db}.every'(.|\n)*write_spark_table"):
        session.sql(f"insert into {db}.every values (1)")


def test_off_and_listing(connect: Connect, session: Session, db: str) -> None:
    listed = session.catalog().tables(db).to_pylist()
    found = {row["table_name"]: (row["table_schema"], row["table_type"], row["found_in"]) for row in listed}
    assert found["every"] == (db, "MANAGED", "spark")
    assert found["seen"] == (db, "VIEW", "spark")
    off = connect({"sparkfusion.spark_catalog": "off"})
    off.sql("create table mine as select 1 as x")
    assert off.catalog().tables().select(["table_name", "found_in"]).to_pylist() == [
        {"table_name": "mine", "found_in": "session"}
    ]
    with pytest.raises(
        UserError, match=rf"'datafusion.{db}.every' not found\n.*spark_catalog is off, so tables of Spark"
    ):
        off.sql(f"select * from {db}.every")
    assert session.sql(f"describe {db}.parts").to_pydict()["column_name"] == ["n", "p", "q", "r"]
    with pytest.raises(UserError, match="Spark cannot list the tables of 'sf_nowhere'"):
        session.catalog().tables("sf_nowhere")


def test_a_table_is_copied_but_no_view_keeps_old_files(connect: Connect, spark: SparkSession, db: str) -> None:
    session = connect(SPLIT)
    session.sql(f"create table copied as select id from {db}.every where id < 3")
    assert session.sql("select sum(id) as s from copied").to_pydict() == {"s": [3]}
    with pytest.raises(UserError, match=rf"cannot create a view over '{db}\.every'"):
        session.sql(f"create or replace view small as select id from {db}.every where id < 3")
    session.sql("create view own as select id from copied")
    assert session.sql("select sum(id) as s from own").to_pydict() == {"s": [3]}


@pytest.mark.parametrize(
    "query",
    [
        "select I, count(*) as n, sum(id) / 2 as half from {db}.EVERY group by i order by i desc limit 5",
        "select e.id, s.name from {db}.every e join {db}.seen s on e.id = s.id order by 1",
        "select n, nvl(q, 'none') as q from spark_catalog.{db}.parts order by n",
        "select id div 4 as d, collect_list(id) as ids from a_view group by 1 order by 1",
    ],
)
def test_names_mean_the_same_in_sparks_dialect(spark: SparkSession, session: Session, db: str, query: str) -> None:
    spark.range(10).createOrReplaceTempView("a_view")
    try:
        text = query.format(db=db)
        assert session.sql(text, dialect="spark").to_pylist() == [row.asDict() for row in spark.sql(text).collect()]
    finally:
        spark.catalog.dropTempView("a_view")


def test_a_name_that_spark_does_not_know_is_not_found_in_its_dialect(session: Session, db: str) -> None:
    with pytest.raises(UserError, match="nowhere") as raised:
        session.sql(f"select * from {db}.nowhere", dialect="spark")
    assert "Spark's catalog" in str(raised.value)
