"""Batches that `for_spark` made go through the real `mapInArrow`, one job for all types, and come back as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext

from sparkfusion.errors import InternalError, UserError
from sparkfusion.runner.spark.casts import for_spark
from sparkfusion.runner.spark.spark_types import spark_arrow_schema, spark_schema
from tests.spark.conf import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# mapInArrow needs no pandas at all, but looks for it.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

LONG = "x" * 40  # views keep up to twelve bytes elsewhere than the rest
HALF_OPEN = (slice(0, None), slice(1, None), slice(1, 2), slice(3, None))


@dataclass(frozen=True)
class Answer:
    """A column of three rows, the last a null; its type in Spark; and the values that Spark then has."""

    array: pa.Array
    spark: str
    values: list[Any]


def answer(kind: pa.DataType, spark: str, first: Any, second: Any, values: list[Any] | None = None) -> Answer:
    return Answer(pa.array([first, second, None], kind), spark, [*(values or [first, second]), None])


def raw(kind: pa.DataType, spark: str, first: int, second: int, values: list[Any]) -> Answer:
    """Of the numbers that the values are stored as."""
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    return Answer(pa.array([first, second, None], storage).view(kind), spark, [*values, None])


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def encoded_runs() -> pa.Array:
    return pc.run_end_encode(pa.array(["a", "a", None]))


DAY = 86_400_000
LISTS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
    "fixed_size_list": lambda kind: pa.list_(kind, 2),
}
FAR = 9_223_372_036_854_775  # microseconds: the last instant of which there are nanoseconds

ANSWERS = {
    "null": answer(pa.null(), "void", None, None),
    "bool": answer(pa.bool_(), "boolean", True, False),
    "int8": answer(pa.int8(), "tinyint", -128, 127),
    "int16": answer(pa.int16(), "smallint", -(2**15), 2**15 - 1),
    "int32": answer(pa.int32(), "int", -(2**31), 2**31 - 1),
    "int64": answer(pa.int64(), "bigint", -(2**63), 2**63 - 1),
    "uint8": answer(pa.uint8(), "smallint", 0, 2**8 - 1),
    "uint16": answer(pa.uint16(), "int", 0, 2**16 - 1),
    "uint32": answer(pa.uint32(), "bigint", 0, 2**32 - 1),
    "uint64": answer(pa.uint64(), "decimal(20,0)", 0, 2**64 - 1),
    "float16": answer(pa.float16(), "float", 65504.0, float("-inf")),
    "float32": answer(pa.float32(), "float", 1.5, float("inf")),
    "float64": answer(pa.float64(), "double", 5e-324, -1.7976931348623157e308),
    "decimal32": answer(pa.decimal32(9, 2), "decimal(9,2)", Decimal("-9999999.99"), Decimal("0.01")),
    "decimal64": answer(pa.decimal64(18, 0), "decimal(18,0)", Decimal(10**18 - 1), Decimal(-1)),
    "decimal128": answer(pa.decimal128(38, 10), "decimal(38,10)", Decimal(10**28 - 1), Decimal("-1E-10")),
    "decimal256": answer(pa.decimal256(38, 38), "decimal(38,38)", Decimal("1E-38"), Decimal("-0.5")),
    "decimal_e3": answer(pa.decimal128(2, -3), "decimal(5,0)", Decimal("99E3"), Decimal("-1E3")),
    "decimal_e-5": raw(pa.decimal64(3, 5), "decimal(5,5)", 999, -1, [Decimal("0.00999"), Decimal("-0.00001")]),
    "utf8": answer(pa.string(), "string", "", "žluťoučký 🐎"),
    "large_utf8": answer(pa.large_string(), "string", "", LONG),
    "utf8_view": answer(pa.string_view(), "string", "short", LONG),
    "binary": answer(pa.binary(), "binary", b"", b"\x00\xff"),
    "large_binary": answer(pa.large_binary(), "binary", b"", b"\x00\xff"),
    "binary_view": answer(pa.binary_view(), "binary", b"", LONG.encode()),
    "fixed_size_binary": answer(pa.binary(2), "binary", b"ab", b"\x00\xff"),
    "date32": answer(pa.date32(), "date", date(1, 1, 1), date(9999, 12, 31)),
    "date64": raw(pa.date64(), "date", -DAY, DAY, [date(1969, 12, 31), date(1970, 1, 2)]),
    "time32_s": answer(pa.time32("s"), "time(6)", time(), time(23, 59, 59)),
    "time32_ms": answer(pa.time32("ms"), "time(6)", time(), time(23, 59, 59, 999000)),
    "time64_us": answer(pa.time64("us"), "time(6)", time(), time(23, 59, 59, 999999)),
    "time64_ns": raw(
        pa.time64("ns"), "time(6)", 1999, 86_400 * 10**9 - 1, [time(0, 0, 0, 1), time(23, 59, 59, 999999)]
    ),
    "timestamp_s": answer(pa.timestamp("s"), "timestamp_ntz", datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),
    "timestamp_ms": answer(
        pa.timestamp("ms"), "timestamp_ntz", datetime(1, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4000)
    ),
    "timestamp_us": answer(
        pa.timestamp("us"), "timestamp_ntz", datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 1)
    ),
    "timestamp_ns": raw(
        pa.timestamp("ns"),
        "timestamp_ntz",
        -1,
        1999,
        [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1, 0, 0, 0, 1)],
    ),
    "timestamp_ns_ends": raw(
        pa.timestamp("ns"),
        "timestamp_ntz",
        -(2**63),
        2**63 - 1,
        [datetime(1970, 1, 1) - timedelta(microseconds=FAR + 1), datetime(1970, 1, 1) + timedelta(microseconds=FAR)],
    ),
    "instant_s": answer(pa.timestamp("s", "Europe/Prague"), "timestamp", utc(1889, 12, 31), utc(2024, 10, 27, 1, 30)),
    "instant_us": answer(
        pa.timestamp("us", "+02:00"), "timestamp", utc(1, 1, 2), utc(1969, 12, 31, 23, 59, 59, 999999)
    ),
    "instant_ns": raw(
        pa.timestamp("ns", "no such zone"),
        "timestamp",
        -1001,
        1000,
        [utc(1969, 12, 31, 23, 59, 59, 999998), utc(1970, 1, 1, 0, 0, 0, 1)],
    ),
    "duration_s": answer(pa.duration("s"), "interval day to second", timedelta(days=-1), timedelta(days=99_999)),
    "duration_ms": answer(pa.duration("ms"), "interval day to second", timedelta(milliseconds=-1), timedelta()),
    "duration_us": answer(pa.duration("us"), "interval day to second", timedelta(microseconds=-1), timedelta(1)),
    "duration_ns": raw(
        pa.duration("ns"), "interval day to second", -1, 1999, [timedelta(microseconds=-1), timedelta(microseconds=1)]
    ),
    "dictionary": answer(pa.dictionary(pa.int8(), pa.string()), "string", "a", LONG),
    "dictionary_of_views": Answer(
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), pa.array(["a", LONG], pa.string_view())),
        "string",
        [LONG, "a", None],
    ),
    "dictionary_uint": answer(pa.dictionary(pa.uint8(), pa.uint64()), "decimal(20,0)", 2**64 - 1, 0),
    "run_ends": Answer(encoded_runs(), "string", ["a", "a", None]),
    "uuid": answer(pa.uuid(), "binary", UUID(int=1).bytes, UUID(int=2).bytes),
    "json": answer(pa.json_(), "string", "{}", "[1]"),
    "bool8": answer(pa.bool8(), "tinyint", 1, 0),
    **{name: answer(make(pa.uint8()), "array<smallint>", [1, None], [255, 0]) for name, make in LISTS.items()},
    **{
        f"{name}_of_instants": Answer(
            pa.array([[-1, None], [1000, 0], None], make(pa.timestamp("ns", "UTC"))),
            "array<timestamp>",
            [[utc(1969, 12, 31, 23, 59, 59, 999999), None], [utc(1970, 1, 1, 0, 0, 0, 1), utc(1970, 1, 1)], None],
        )
        for name, make in LISTS.items()
    },
    "empty_lists": answer(pa.large_list(pa.string_view()), "array<string>", [], [""]),
    "list_of_dictionary": answer(pa.list_(pa.dictionary(pa.int8(), pa.string())), "array<string>", ["a", None], ["b"]),
    "list_of_uuid": Answer(
        pa.ListArray.from_arrays(pa.array([0, 1, None, 1], pa.int32()), pa.array([UUID(int=1).bytes], pa.uuid())),
        "array<binary>",
        [[UUID(int=1).bytes], [], None],
    ),
    "list_of_void": answer(pa.list_(pa.null()), "array<void>", [None], []),
    "list_of_times": Answer(
        pa.array([[1999], [], None], pa.list_(pa.field("element", pa.time64("ns")))),
        "array<time(6)>",
        [[time(0, 0, 0, 1)], [], None],
    ),
    "list_of_lists": answer(
        pa.large_list(pa.list_view(pa.list_(pa.uint8(), 1))),
        "array<array<array<smallint>>>",
        [[[255], None], None, []],
        [],
    ),
    "map": answer(
        pa.map_(pa.field("keys", pa.string_view(), False), pa.field("values", pa.uint16())),
        "map<string,int>",
        [("a", 65535), (LONG, None)],
        [],
    ),
    "map_of_same": answer(
        pa.map_(pa.field("keys", pa.string(), False), pa.field("values", pa.int64())),
        "map<string,bigint>",
        [("a", 1)],
        [],
    ),
    "struct": answer(
        pa.struct([("a", pa.uint8()), ("b", pa.struct([("c", pa.list_(pa.string_view()))]))]),
        "struct<a:smallint,b:struct<c:array<string>>>",
        {"a": 255, "b": {"c": [LONG, None]}},
        {"a": None, "b": None},
    ),
    "empty_struct": answer(pa.struct([]), "struct<>", {}, {}),
}


def all_of_them() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([case.array for case in ANSWERS.values()], names=list(ANSWERS))


def to_spark(spark: SparkSession, batch: pa.RecordBatch, copies: int = 1) -> DataFrame:
    """The DataFrame of an answer with this batch; the worker casts."""
    target = spark_arrow_schema(batch.schema)
    rows = batch.to_struct_array()  # because a batch without columns forgets its rows when it is pickled

    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield from (for_spark(pa.RecordBatch.from_struct_array(rows), target) for _ in range(copies))

    return spark.range(0, 1, 1, 1).mapInArrow(give, spark_schema(batch.schema))


@pytest.fixture(scope="module")
def arrived(spark: SparkSession) -> tuple[DataFrame, pa.Table]:
    """Through a Spark that compares our types with the declared ones, which it does not do by itself."""
    with settings(spark, execution__arrow__pyspark__validateSchema__enabled="true", session__timeZone="Europe/Prague"):
        df = to_spark(spark, all_of_them())
        return df, df.toArrow()


class TestInSpark:
    @pytest.mark.parametrize("name", ANSWERS)
    def test_a_column_arrives_with_its_values(self, arrived: tuple[DataFrame, pa.Table], name: str) -> None:
        df, table = arrived
        assert df.schema[name].dataType.simpleString() == ANSWERS[name].spark
        assert table[name].to_pylist() == ANSWERS[name].values

    def test_rows_without_columns(self, spark: SparkSession) -> None:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}, {}], pa.struct([])))
        assert to_spark(spark, batch, copies=2).count() == 6

    def test_empty_batches(self, spark: SparkSession) -> None:
        assert to_spark(spark, all_of_them().slice(0, 0), copies=2).toArrow().num_rows == 0

    def test_nullability_and_names_of_any_kind(self, spark: SparkSession) -> None:
        inner = pa.struct([pa.field("x.y", pa.string_view(), False)])
        schema = pa.schema(
            [
                pa.field("count(*)", pa.uint8(), False),
                pa.field("sum(t.`a`)", pa.list_(pa.field("item", inner, False)), False),
                pa.field("", pa.map_(pa.string(), pa.field("value", pa.uint8(), False))),
            ]
        )
        batch = pa.RecordBatch.from_pylist([{"count(*)": 1, "sum(t.`a`)": [{"x.y": "a"}], "": [("k", 2)]}], schema)
        df = to_spark(spark, batch)
        assert df.toArrow().schema == spark_arrow_schema(schema)
        assert df.toArrow().to_pylist() == batch.to_pylist()
        assert df.schema == spark_schema(schema)
        assert [field.nullable for field in df.schema] == [False, False, True]

    def test_what_datafusion_answers(self, spark: SparkSession) -> None:
        query = """select map(['a', 'b'], [1, null]) as m, named_struct('x', make_array('y')) as s, count(*) as n,
            to_timestamp('2024-01-01T00:00:00.123456789') as t, date '2024-01-01' as d, null as v,
            timestamp '2024-01-02' - timestamp '2024-01-01' as i, arrow_cast('z', 'Utf8View') as z"""
        (batch,) = SessionContext().sql(query).to_arrow_table().to_batches()
        assert to_spark(spark, batch).toArrow().to_pylist() == [
            {
                "m": [("a", 1), ("b", None)],
                "s": {"x": ["y"]},
                "n": 1,
                "t": datetime(2024, 1, 1, 0, 0, 0, 123456),
                "d": date(2024, 1, 1),
                "v": None,
                "i": timedelta(days=1),
                "z": "z",
            }
        ]


class TestForSpark:
    @pytest.mark.parametrize("part", HALF_OPEN, ids=["whole", "tail", "middle", "empty"])
    @pytest.mark.parametrize("name", ANSWERS)
    def test_slices_are_cast_like_the_whole(self, name: str, part: slice) -> None:
        batch = pa.RecordBatch.from_arrays([ANSWERS[name].array[part]], names=["c"])
        target = spark_arrow_schema(batch.schema)
        made = for_spark(batch, target)
        made.validate(full=True)
        assert made.schema.equals(target, check_metadata=True)
        assert made.column(0).type.equals(target.field(0).type, check_metadata=True)
        assert made.column(0).to_pylist() == ANSWERS[name].values[part]

    def test_lists_that_overlap_and_go_backwards(self) -> None:
        views = pa.ListViewArray.from_arrays([2, 0, 0], [2, 3, 0], pa.array([1, 2, 3, 4], pa.uint8()))
        assert cast(views[1:]).to_pylist() == [[1, 2, 3], []]
        assert cast(views).to_pylist() == [[3, 4], [1, 2, 3], []]

    def test_times_lose_their_nanoseconds_at_every_depth(self) -> None:
        times = pa.array([1999, 86_400 * 10**9 - 1, None], pa.time64("ns"))
        cut = [1000, 86_400 * 10**9 - 1000, None]
        assert cast(times).cast(pa.int64()).to_pylist() == cut
        lists = pa.ListArray.from_arrays([0, 3], times, type=pa.list_(pa.field("element", times.type)))
        assert cast(lists).values.cast(pa.int64()).to_pylist() == cut

    def test_what_already_fits_is_not_copied(self) -> None:
        for array in (pa.array(["a", None]), pa.array([["a"], None]), pa.array([{"x": ["a"]}, None])):
            assert cast(array).buffers()[-1].address == array.buffers()[-1].address

    def test_extension_and_metadata_are_left_behind(self) -> None:
        field = pa.field("c", pa.uuid(), metadata={"comment": "key"})
        assert spark_arrow_schema(pa.schema([field], {"whole": "schema"})).equals(
            pa.schema([pa.field("c", pa.binary())]), check_metadata=True
        )

    @pytest.mark.parametrize(
        ("array", "said"),
        [
            (pa.array([2**62], pa.timestamp("s")), "out of bounds"),
            (pa.array([[2**62]], pa.list_(pa.timestamp("ms", "UTC"))), "out of bounds"),
            (pa.array([-(2**62)], pa.duration("s")), "out of bounds"),
            (pa.array([DAY + 1]).view(pa.date64()), "would lose data"),
        ],
        ids=["timestamp", "nested", "duration", "date64"],
    )
    def test_a_value_that_does_not_fit_is_an_error(self, array: pa.Array, said: str) -> None:
        with pytest.raises(UserError, match=f"column 'c' of the result .*{said}"):
            cast(array)

    def test_columns_that_are_not_those_of_the_answer(self) -> None:
        with pytest.raises(InternalError, match="a batch has 1 columns, the answer has 0"):
            for_spark(pa.RecordBatch.from_pydict({"a": [1]}), pa.schema([]))


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int64()], ids=["cast", "as it is"])
class TestNulls:
    @pytest.mark.parametrize(
        ("make", "value", "name"),
        [
            (lambda field: field.type, None, "c"),
            (pa.list_, [None], "x"),
            (lambda field: pa.struct([field]), {"x": None}, "x"),
            (lambda field: pa.map_(pa.string(), field), [("k", None)], "value"),
            (lambda field: pa.struct([pa.field("y", pa.list_(pa.struct([field])))]), {"y": [{"x": None}]}, "x"),
        ],
        ids=["column", "list", "struct", "map", "deep"],
    )
    def test_a_null_that_the_schema_excludes(
        self, kind: pa.DataType, make: Callable[[pa.Field], pa.DataType], value: Any, name: str
    ) -> None:
        whole = make(pa.field("x", kind, False))
        batch = pa.RecordBatch.from_arrays([pa.array([value], whole)], schema=pa.schema([pa.field("c", whole, False)]))
        with pytest.raises(InternalError, match=f"'{name}' of the result has a null"):
            for_spark(batch, spark_arrow_schema(batch.schema))

    def test_nulls_below_a_null_do_not_count(self, kind: pa.DataType) -> None:
        field, mask = pa.field("x", kind, False), pa.array([True, False])
        struct = pa.StructArray.from_arrays([pa.array([None, 1], kind)], fields=[field], mask=mask)
        lists = pa.FixedSizeListArray.from_arrays(pa.array([None, 1], kind), type=pa.list_(field, 1), mask=mask)
        assert cast(struct).to_pylist() == [None, {"x": 1}]
        assert cast(lists).to_pylist() == [None, [1]]


REFUSED = {
    "interval": (pa.month_day_nano_interval(), "c", r"cast\(… as varchar\)"),
    "decimal256": (pa.decimal256(39, 5), "c", r"cast\(… as decimal\(38, 5\)\)"),
    "scale below zero": (pa.decimal128(38, -1), "c", r"decimal\(38, 0\)"),
    "union": (pa.dense_union([pa.field("a", pa.int8())]), "c", "leave it out"),
    "list": (pa.list_view(pa.month_day_nano_interval()), "c.element", "varchar"),
    "map": (pa.map_(pa.string(), pa.decimal256(76, 0)), "c.value", "decimal"),
    "struct": (pa.struct([("s", pa.struct([("i", pa.month_day_nano_interval())]))]), "c.s.i", "varchar"),
    "dictionary": (pa.dictionary(pa.int8(), pa.decimal256(76, 0)), "c", "decimal"),
}


class TestRefusal:
    @pytest.mark.parametrize("name", REFUSED)
    def test_the_error_names_the_column_and_what_to_do(self, name: str) -> None:
        kind, path, hint = REFUSED[name]
        with pytest.raises(UserError, match=rf"column '{path}' of the result has type .*, which Spark .*\n.*{hint}"):
            spark_schema(pa.schema([("a", pa.int8()), ("c", kind)]))

    def test_two_columns_of_one_name(self) -> None:
        with pytest.raises(UserError, match="two of the columns are called 'id'"):
            spark_schema(pa.schema([("id", pa.int8()), ("id", pa.int8())]))

    def test_two_fields_of_one_name(self) -> None:
        with pytest.raises(UserError, match=r"two of the fields of 'l\.element' are called 'a'"):
            spark_schema(pa.schema([("l", pa.list_(pa.struct([("a", pa.int8()), ("a", pa.int8())])))]))


def cast(array: pa.Array) -> pa.Array:
    batch = pa.RecordBatch.from_arrays([array], names=["c"])
    made = for_spark(batch, spark_arrow_schema(batch.schema)).column(0)
    made.validate(full=True)
    return made
