"""What Spark really exports is decoded with our schema, one job for all types; then DataFusion has to work with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.runner.spark.spark_types import arrow_schema, spark_schema
from tests.spark.conf import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ZONE = "Europe/Prague"
LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
POINT = "X'0101000000000000000000F03F0000000000000040'"


@dataclass(frozen=True)
class Exported:
    """A column of two rows and a null: its SQL, its type and its values as Arrow has them."""

    first: str
    second: str
    type: pa.DataType
    values: tuple[Any, Any]


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


EXPORTED = {
    "boolean": Exported("true", "false", pa.bool_(), (True, False)),
    "byte": Exported("-128Y", "127Y", pa.int8(), (-128, 127)),
    "short": Exported("-32768S", "32767S", pa.int16(), (-(2**15), 2**15 - 1)),
    "int": Exported("-2147483648", "2147483647", pa.int32(), (-(2**31), 2**31 - 1)),
    "long": Exported("-9223372036854775808", "9223372036854775807L", pa.int64(), (-(2**63), 2**63 - 1)),
    "float": Exported("float('-Infinity')", "1.5f", pa.float32(), (float("-inf"), 1.5)),
    "double": Exported("4.9e-324d", "1.7976931348623157e308d", pa.float64(), (5e-324, 1.7976931348623157e308)),
    "decimal": Exported(
        "-9999999999999999999999999999.9999999999BD",
        "cast(0.0000000001 as decimal(38, 10))",
        pa.decimal128(38, 10),
        (Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001")),
    ),
    "small_decimal": Exported("-9.99BD", "0.01BD", pa.decimal128(3, 2), (Decimal("-9.99"), Decimal("0.01"))),
    "string": Exported("''", "'žluťoučký 🐎'", pa.string(), ("", "žluťoučký 🐎")),
    "char": Exported("cast('a' as char(2))", "'b'", pa.string(), ("a", "b")),
    "binary": Exported("X''", "X'00FF'", pa.binary(), (b"", b"\x00\xff")),
    "date": Exported("date'0001-01-01'", "date'9999-12-31'", pa.date32(), (date(1, 1, 1), date(9999, 12, 31))),
    "timestamp": Exported(  # the hour that Prague has twice
        "timestamp'2024-10-27 02:30:00+02:00'",
        "timestamp'2024-10-27 02:30:00+01:00'",
        pa.timestamp("us", ZONE),
        (utc(2024, 10, 27, 0, 30), utc(2024, 10, 27, 1, 30)),
    ),
    "old_timestamp": Exported(
        "timestamp'1969-12-31 23:59:59.999999Z'",
        "timestamp'1890-01-01 00:00:00'",  # Prague was 57 minutes and 44 seconds east of Greenwich
        pa.timestamp("us", ZONE),
        (utc(1969, 12, 31, 23, 59, 59, 999999), utc(1889, 12, 31, 23, 2, 16)),
    ),
    "timestamp_ntz": Exported(
        "timestamp_ntz'0001-01-01 00:00:00'",
        "timestamp_ntz'9999-12-31 23:59:59.999999'",
        pa.timestamp("us"),
        (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    ),
    "day_time": Exported(
        "interval '-1 02:03:04.000005' day to second",
        "interval '100' day",
        pa.duration("us"),
        (-timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5), timedelta(days=100)),
    ),
    "calendar": Exported(
        "make_interval(1, -2, 0, 3, 0, 0, 0.000004)",
        "make_interval(0, 0, 0, 0, -1)",
        pa.month_day_nano_interval(),
        ((10, 3, 4000), (0, 0, -3_600_000_000_000)),
    ),
    "time": Exported("time'00:00:00'", "time'23:59:59.999999'", pa.time64("ns"), (time(), time(23, 59, 59, 999999))),
    "array": Exported(
        "array('a', null, '')",
        "cast(array() as array<string>)",
        pa.list_(pa.field("element", pa.string())),
        (["a", None, ""], []),
    ),
    "map": Exported(
        "map('a', timestamp'1970-01-01 00:00:00Z', 'b', null)",
        "cast(map() as map<string, timestamp>)",
        pa.map_(pa.string(), pa.timestamp("us", ZONE)),
        ([("a", utc(1970, 1, 1)), ("b", None)], []),
    ),
    "struct": Exported(
        "named_struct('x', 1, 'y', array(named_struct('z', X'01'), null))",
        "named_struct('x', null, 'y', null)",
        pa.struct(
            [("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.struct([pa.field("z", pa.binary(), False)]))))]
        ),
        ({"x": 1, "y": [{"z": b"\x01"}, None]}, {"x": None, "y": None}),
    ),
    "void": Exported("null", "null", pa.null(), (None, None)),
}
ALIKE = {"void"}


@pytest.fixture(scope="module", autouse=True)
def zone_and_times(spark: SparkSession) -> Iterator[None]:
    with settings(spark, session__timeZone=ZONE, timeType__enabled="true"):
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["usual", "large"])
def exported(request: pytest.FixtureRequest, spark: SparkSession, zone_and_times: None) -> tuple[bool, pa.Table]:
    first = ", ".join(f"{case.first} as {name}" for name, case in EXPORTED.items())
    second = ", ".join(case.second for case in EXPORTED.values())
    nulls = ", ".join("null" for _ in EXPORTED)
    df = spark.sql(f"select {first} union all select {second} union all select {nulls}")
    with settings(spark, execution__arrow__useLargeVarTypes=str(request.param).lower()):
        return request.param, decode(df, large_types=request.param)


def decode(df: DataFrame, **options: bool) -> pa.Table:
    schema = arrow_schema(df.schema, ZONE, **options)
    messages: Any = df._jdf.toArrowBatchRdd().toJavaRDD().collect()
    batches = [pa.ipc.read_record_batch(pa.py_buffer(bytes(message)), schema) for message in messages]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema)


def large(kind: pa.DataType) -> pa.DataType:
    """The type with every string and binary in it made large."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", large(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(large(kind.key_type), large(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(large(field.type)) for field in kind])
    return LARGE.get(kind, kind)


class TestExport:
    @pytest.mark.parametrize("name", EXPORTED)
    def test_the_batches_of_spark_are_decoded_exactly(self, exported: tuple[bool, pa.Table], name: str) -> None:
        is_large, table = exported
        column, case = table[name], EXPORTED[name]
        assert column.type == (large(case.type) if is_large else case.type)
        if pa.types.is_timestamp(case.type) and case.type.tz is not None:
            column = column.cast(
                pa.timestamp("us", "UTC")
            )  # Python finds no two times equal in an hour that comes twice
        assert column.to_pylist() == [*case.values, None]

    @pytest.mark.parametrize("name", EXPORTED)
    def test_datafusion_selects_and_groups_by_every_type(self, exported: tuple[bool, pa.Table], name: str) -> None:
        _, table = exported
        context = SessionContext()
        context.register_record_batches("t", [table.select([name]).to_batches()])
        selected = context.sql(f'select "{name}" from t').to_arrow_table()
        groups = context.sql(f'select "{name}", count(*) from t group by "{name}"').to_arrow_table()
        assert selected.column(0).combine_chunks() == table[name].combine_chunks()
        assert groups.num_rows == (1 if name in ALIKE else 3)

    def test_a_schema_that_came_from_spark_goes_back_unchanged(self, spark: SparkSession) -> None:
        one_way = {"calendar"}
        columns = ", ".join(f"{case.first} as {name}" for name, case in EXPORTED.items() if name not in one_way)
        schema = spark.sql(f"select {columns}").schema
        assert spark_schema(arrow_schema(schema, ZONE)) == schema
        assert spark_schema(arrow_schema(schema, ZONE, large_types=True)) == schema

    def test_nullability_is_kept_at_every_depth(self, spark: SparkSession) -> None:
        df = spark.sql(
            "select 1 a, cast(null as int) b, array(1) c, array(1, null) d, map(1, 2) e, map(1, null) f, array() g,"
            " named_struct('x', 1, 'y', cast(null as string)) h"
        )
        assert decode(df).schema == pa.schema(
            [
                pa.field("a", pa.int32(), False),
                pa.field("b", pa.int32()),
                pa.field("c", pa.list_(pa.field("element", pa.int32(), False)), False),
                pa.field("d", pa.list_(pa.field("element", pa.int32())), False),
                pa.field("e", pa.map_(pa.int32(), pa.field("value", pa.int32(), False)), False),
                pa.field("f", pa.map_(pa.int32(), pa.null()), False),
                pa.field("g", pa.list_(pa.field("element", pa.null())), False),
                pa.field("h", pa.struct([pa.field("x", pa.int32(), False), pa.field("y", pa.string())]), False),
            ]
        )

    def test_a_dataframe_without_columns_keeps_its_rows(self, spark: SparkSession) -> None:
        df: Any = spark.range(0, 3, 1, 1).select()
        (message,) = df._jdf.toArrowBatchRdd().toJavaRDD().collect()
        batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(message)), arrow_schema(df.schema, ZONE))
        assert (batch.num_rows, batch.num_columns) == (3, 0)

    def test_char_and_varchar_are_strings(self, spark: SparkSession) -> None:
        with settings(spark, preserveCharVarcharTypeInfo="true"):
            table = decode(spark.sql("select cast('a' as char(3)) c, cast('a' as varchar(3)) v"))
        assert table.to_pylist() == [{"c": "a  ", "v": "a"}]

    def test_a_user_defined_type_is_what_it_is_stored_as(self, spark: SparkSession) -> None:
        from pyspark.ml.linalg import Vectors

        df = spark.createDataFrame([(Vectors.dense([1.0, 2.0]),), (Vectors.sparse(3, [1], [5.0]),)], ["v"])
        assert sorted(row["v"]["values"] for row in decode(df).to_pylist()) == [[1.0, 2.0], [5.0]]

    def test_metadata_of_columns_is_left_out(self, spark: SparkSession) -> None:
        from pyspark.sql.functions import col

        df = spark.range(1).select(col("id").alias("id", metadata={"comment": "key"}))
        assert df.schema["id"].metadata
        assert arrow_schema(df.schema, ZONE).field("id").metadata is None


REFUSED = {
    "interval '1-2' year to month": ("c", "interval year to month"),
    "interval '3' month": ("c", "interval month"),
    "interval '3' year": ("c", "interval year"),
    "parse_json('{}')": ("c", "variant"),
    f"st_geomfromwkb({POINT})": ("c", "geometry(0)"),
    f"st_geogfromwkb({POINT})": ("c", "geography(4326)"),
    "'a' collate UNICODE_CI": ("c", "string collate UNICODE_CI"),
    "named_struct()": ("c", "struct<>"),
    "map()": ("c", "map<void,void>"),
    "array(parse_json('1'))": ("c.element", "variant"),
    "map(interval '3' month, 1)": ("c.key", "interval month"),
    "map(1, array(interval '3' month))": ("c.value.element", "interval month"),
    "named_struct('a', named_struct('b', 'x' collate UTF8_LCASE))": ("c.a.b", "string collate UTF8_LCASE"),
}


class TestRefusal:
    @pytest.mark.parametrize("expression", REFUSED)
    def test_the_error_names_the_column_and_its_type(self, spark: SparkSession, expression: str) -> None:
        path, kind = REFUSED[expression]
        with pytest.raises(UserError) as caught:
            arrow_schema(spark.sql(f"select 1 as a, {expression} as c").schema, ZONE)
        assert f"column {path!r} of the DataFrame has type {kind}," in caught.value.message

    @pytest.mark.parametrize("expression", [name for name, (path, _) in REFUSED.items() if path == "c"])
    def test_the_hint_is_a_conversion_that_helps(self, spark: SparkSession, expression: str) -> None:
        with pytest.raises(UserError) as caught:
            arrow_schema(spark.sql(f"select {expression} as c").schema, ZONE)
        conversion = str(caught.value.hint).split("first: ")[1].replace("…", expression)
        assert decode(spark.sql(f"select {conversion} as c")).num_rows == 1

    def test_two_columns_of_one_name(self, spark: SparkSession) -> None:
        with pytest.raises(UserError, match="two of the columns are called 'a'"):
            arrow_schema(spark.sql("select 1 a, 2 b, 3 a").schema, ZONE)

    def test_two_fields_of_one_name(self, spark: SparkSession) -> None:
        with pytest.raises(UserError, match=r"two of the fields of 's\.element' are called 'a'"):
            arrow_schema(spark.sql("select array(named_struct('a', 1, 'a', 2)) s").schema, ZONE)


class TestZones:
    @pytest.mark.parametrize(
        ("spark_zone", "zone"),
        [
            ("UTC", "UTC"),
            ("Z", "UTC"),
            ("UT", "UTC"),
            ("+1", "+01:00"),
            ("-3:30", "-03:30"),
            ("+01:00:00", "+01:00"),
            ("GMT+1", "+01:00"),
            ("UTC+08:00", "+08:00"),
            ("UT-0330", "-03:30"),
            ("America/Los_Angeles", "America/Los_Angeles"),
            ("Etc/GMT+5", "Etc/GMT+5"),
        ],
    )
    def test_datafusion_understands_the_zones_of_spark(self, spark: SparkSession, spark_zone: str, zone: str) -> None:
        schema = arrow_schema(spark.sql("select timestamp'2024-01-01' t").schema, spark_zone)
        assert schema.field("t").type == pa.timestamp("us", zone)
        context = SessionContext()
        context.register_record_batches("z", [[pa.RecordBatch.from_pydict({"t": [0]}, schema)]])
        assert context.sql("select cast(t as varchar) as t from z where date_trunc('day', t) is not null").count() == 1
