"""Every kind of difference is found, in every type; what is no difference is not."""

from __future__ import annotations

import datetime as dt
import random
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion.verify import CompareOptions, OrderKey, compare_tables

D = Decimal
UTC = dt.UTC
TYPED: dict[str, tuple[pa.DataType, Any, Any]] = {
    "int8": (pa.int8(), 1, 2),
    "uint64": (pa.uint64(), 2**64 - 1, 2**64 - 2),
    "bool": (pa.bool_(), True, False),
    "string": (pa.string(), "a", "A"),
    "large_string": (pa.large_string(), "a", "a "),
    "string_view": (pa.string_view(), "a string that is not inlined", "a string that is not inlineD"),
    "binary": (pa.binary(), b"\x00", b"\x00\x00"),
    "binary_view": (pa.binary_view(), b"a", b"b"),
    "fixed_binary": (pa.binary(2), b"ab", b"ac"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "a", "b"),
    "dictionary_of_floats": (pa.dictionary(pa.int8(), pa.float64()), 1.0, 1.5),
    "decimal32": (pa.decimal32(5, 2), D("1.10"), D("1.11")),
    "decimal64": (pa.decimal64(10, 2), D("1.10"), D("1.11")),
    "decimal128": (pa.decimal128(38, 10), D("1.0000000001"), D("1.0000000002")),
    "decimal256": (pa.decimal256(60, 2), D("1.10"), D("1.11")),
    "date32": (pa.date32(), dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
    "date64": (pa.date64(), dt.date(2020, 1, 1), dt.date(2020, 1, 2)),
    "time32": (pa.time32("s"), 1, 2),
    "time64": (pa.time64("ns"), 1, 2),
    "timestamp": (pa.timestamp("ns"), 1, 2),
    "timestamp_tz": (pa.timestamp("us", "Europe/Paris"), 1, 2),
    "duration": (pa.duration("ns"), 1, 2),
    "interval": (pa.month_day_nano_interval(), pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([1, 2, 4])),
    "float16": (pa.float16(), 1.0, 1.5),
    "float32": (pa.float32(), 1.0, 1.00001),
    "float64": (pa.float64(), 1.0, 1.00000001),
    "list": (pa.list_(pa.int64()), [1, 2], [2, 1]),
    "list_of_strings": (pa.list_(pa.string_view()), ["a", None], ["a", ""]),
    "large_list": (pa.large_list(pa.int64()), [1, None], [1]),
    "fixed_list": (pa.list_(pa.int64(), 2), [1, 2], [1, 3]),
    "list_view": (pa.list_view(pa.int64()), [1, 2], [1, 3]),
    "list_of_times": (pa.list_(pa.timestamp("ns")), [1], [2]),
    "list_of_floats": (pa.list_(pa.float64()), [1.0, 2.0], [1.0, 2.1]),
    "struct": (pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": "x"}, {"a": 1, "b": "y"}),
    "struct_of_nulls": (pa.struct([("a", pa.int64())]), {"a": None}, None),
    "deep": (pa.list_(pa.struct([("a", pa.list_(pa.float32()))])), [{"a": [1.0]}], [{"a": [1.5]}]),
    "map": (pa.map_(pa.string(), pa.int64()), [("a", 1)], [("a", 2)]),
    "empty_list": (pa.list_(pa.int64()), [], None),
    "uuid": (pa.uuid(), b"0123456789abcdef", b"0123456789abcdeF"),
}


def typed(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def column(name: str, *values: Any) -> pa.Table:
    return pa.table({"id": range(len(values)), "v": typed(TYPED[name][0], list(values))})


@pytest.mark.parametrize("name", TYPED)
def test_one_flipped_value_is_found(name: str) -> None:
    _, one, other = TYPED[name]
    comparison = compare_tables(column(name, one, one, None), column(name, one, other, None))
    assert not comparison.equal
    assert (comparison.missing_rows, comparison.extra_rows) == (1, 1)


@pytest.mark.parametrize("name", TYPED)
def test_a_null_is_no_value(name: str) -> None:
    one = TYPED[name][1]
    assert not compare_tables(column(name, one, one), column(name, one, None)).equal


@pytest.mark.parametrize("name", TYPED)
def test_the_same_rows_in_another_order_and_other_chunks_are_equal(name: str) -> None:
    _, one, other = TYPED[name]
    left = column(name, one, other, None, one)
    right = pa.concat_tables([left.slice(3, 1), left.slice(1, 2), left.slice(0, 1)])
    comparison = compare_tables(left, right)
    assert comparison.equal, comparison.describe()
    assert comparison.float_tolerance_count == 0


def test_run_end_encoded_values_are_compared() -> None:
    def table(*values: str | None) -> pa.Table:
        return pa.table({"v": pa.RunEndEncodedArray.from_arrays(range(1, len(values) + 1), pa.array(values))})

    assert compare_tables(table("a", None), table(None, "a")).equal
    assert not compare_tables(table("a", None), table("a", "a")).equal


def test_unions_are_compared() -> None:
    def table(*values: int) -> pa.Table:
        types = pa.array([0] * len(values), pa.int8())
        return pa.table({"v": pa.UnionArray.from_sparse(types, [pa.array(values), pa.array(["x"] * len(values))])})

    assert compare_tables(table(1, 2), table(2, 1)).equal
    assert not compare_tables(table(1, 2), table(1, 3)).equal


def test_a_wrong_duplicate_count_is_found() -> None:
    comparison = compare_tables(pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 2, 2]}))
    assert [(d.kind, d.text) for d in comparison.differences] == [("missing row", "a=1"), ("extra row", "a=2")]


def test_missing_and_extra_rows_are_counted() -> None:
    comparison = compare_tables(pa.table({"a": [1, 1, 1]}), pa.table({"a": [1, 5, 5, 6]}))
    assert (comparison.missing_rows, comparison.extra_rows) == (2, 3)
    assert comparison.has("row count")
    assert "x2" in comparison.describe()


def test_many_differences_are_all_counted_but_few_are_shown() -> None:
    comparison = compare_tables(pa.table({"a": range(1000)}), pa.table({"a": range(1000, 2000)}))
    assert (comparison.missing_rows, comparison.extra_rows) == (1000, 1000)
    assert len(comparison.differences) == 2 * CompareOptions().max_differences


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (pa.table({"a": [1]}), pa.table({"b": [1]}), "is named 'b'"),
        (pa.table({"a": [1]}), pa.table({"a": pa.array([1], pa.int32())}), "has type int32, expected int64"),
        (pa.table({"a": ["x"]}), pa.table({"a": pa.array(["x"], pa.string_view())}), "has type string_view"),
        (pa.table({"a": [1]}), pa.table({"a": [1], "b": [1]}), "expected 1 columns"),
        (
            pa.table({"a": pa.array([1], pa.timestamp("us"))}),
            pa.table({"a": pa.array([1], pa.timestamp("us", "UTC"))}),
            "has type timestamp[us, tz=UTC]",
        ),
        (pa.table({"a": [], "b": []}), pa.table({"b": [], "a": []}), "is named"),
    ],
)
def test_a_different_schema_is_found(left: pa.Table, right: pa.Table, words: str) -> None:
    comparison = compare_tables(left, right)
    assert comparison.has("schema")
    assert words in comparison.describe()


def test_nullability_is_a_note_unless_asked_for() -> None:
    strict = pa.schema([pa.field("a", pa.struct([pa.field("x", pa.int64(), nullable=False)]), nullable=False)])
    left = pa.table({"a": [{"x": 1}]})
    right = pa.table({"a": pa.array([{"x": 1}], strict.field("a").type)}, schema=strict)
    relaxed = compare_tables(left, right)
    assert relaxed.equal
    assert "nullability" in relaxed.notes[0]
    assert compare_tables(left, right, CompareOptions(check_nullability=True)).has("schema")


def test_field_metadata_is_no_difference() -> None:
    left = pa.table({"a": [1]})
    assert compare_tables(left, left.replace_schema_metadata({"k": "v"})).equal


def without_columns(rows: int) -> pa.Table:
    return pa.table({"a": range(rows)}).select([])


def test_tables_without_columns_compare_by_row_count() -> None:
    assert compare_tables(without_columns(3), without_columns(3)).equal
    comparison = compare_tables(without_columns(3), without_columns(5))
    assert (comparison.missing_rows, comparison.extra_rows) == (0, 2)


def test_empty_answers_are_equal() -> None:
    empty = pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.list_(pa.string_view()))})
    assert compare_tables(empty, empty).equal
    assert compare_tables(empty, empty.slice(0, 0).combine_chunks()).equal


def test_an_answer_without_rows_differs_from_one_with_rows() -> None:
    full = pa.table({"a": [1.0]})
    assert compare_tables(full, full.schema.empty_table()).missing_rows == 1


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("left", "right"), [(NAN, None), (NAN, 0.0), (NAN, INF), (INF, -INF), (INF, 1.0), (None, 0.0), (INF, 1.7e308)]
)
def test_special_floats_equal_only_themselves(left: float | None, right: float | None) -> None:
    def one(value: float | None) -> pa.Table:
        return pa.table({"v": pa.array([value], pa.float64())})

    assert compare_tables(one(left), one(left)).equal
    assert not compare_tables(one(left), one(right)).equal
    nested_left, nested_right = (
        pa.table({"v": pa.array([[value]], pa.list_(pa.float64()))}) for value in (left, right)
    )
    assert not compare_tables(nested_left, nested_right).equal


def test_all_nans_are_one() -> None:
    quiet = pa.array([0x7FF8000000000000], pa.int64()).view(pa.float64())
    signed = pa.array([-0x0007FFFFFFFFFFFF], pa.int64()).view(pa.float64())
    assert compare_tables(pa.table({"v": quiet}), pa.table({"v": signed})).equal


def test_minus_zero_is_zero_and_is_counted() -> None:
    comparison = compare_tables(pa.table({"v": [0.0, 1.0]}), pa.table({"v": [-0.0, 1.0]}))
    assert comparison.equal
    assert comparison.float_tolerance_count == 1


def noisy(value: float) -> float:
    return value * (1 + 3e-14)


def test_float_noise_is_accepted_and_counted() -> None:
    left = pa.table({"k": ["a", "b", "c"], "x": [1.5, 2.5, None], "y": [0.1, 0.2, 0.3]})
    right = pa.table({"k": ["c", "b", "a"], "x": [None, noisy(2.5), 1.5], "y": [noisy(0.3), 0.2, 0.1]})
    comparison = compare_tables(left, right)
    assert comparison.equal, comparison.describe()
    assert comparison.float_tolerance_count == 2
    assert 0 < comparison.max_relative_error < 1e-13


def test_a_real_float_difference_is_refused() -> None:
    assert not compare_tables(pa.table({"v": [100.0]}), pa.table({"v": [100.001]})).equal
    assert not compare_tables(pa.table({"v": [1e-15]}), pa.table({"v": [2e-15]})).equal


def test_tolerances_are_options() -> None:
    left, right = pa.table({"v": [100.0, 0.0]}), pa.table({"v": [100.001, 1e-15]})
    assert compare_tables(left, right, CompareOptions(relative_tolerance=1e-4, absolute_tolerance=1e-12)).equal
    assert not compare_tables(left, right, CompareOptions(relative_tolerance=1e-4)).equal


def test_narrow_floats_get_the_tolerance_of_their_type() -> None:
    left = pa.table({"v": pa.array([1.0], pa.float32())})
    right = pa.table({"v": pa.array([1.0 + 2**-22], pa.float32())})
    assert compare_tables(left, right).float_tolerance_count == 1
    assert not compare_tables(
        left.cast(pa.schema([("v", pa.float64())])), right.cast(pa.schema([("v", pa.float64())]))
    ).equal


def test_noise_that_swaps_rows_in_sort_order_is_accepted() -> None:
    left = pa.table({"x": [1.0, noisy(1.0)], "y": [5.0, 7.0]})
    right = pa.table({"x": [noisy(1.0), 1.0], "y": [5.0, 7.0]})
    comparison = compare_tables(left, right)
    assert comparison.equal, comparison.describe()
    assert comparison.float_tolerance_count == 2


def test_a_greedy_choice_does_not_hide_a_full_matching() -> None:
    options = CompareOptions(relative_tolerance=0.0, absolute_tolerance=1.0)
    left = pa.table({"x": [1.0, 1.2], "y": [0.0, 1.0]})
    right = pa.table({"x": [1.1, 1.3], "y": [0.5, -0.5]})  # the second row on the left fits only the first on the right
    comparison = compare_tables(left, right, options)
    assert comparison.equal
    assert comparison.float_tolerance_count == 4


def test_floats_of_one_row_are_not_mixed_with_those_of_another() -> None:
    left = pa.table({"k": ["a", "a"], "x": [1.0, 2.0], "y": [10.0, 20.0]})
    right = pa.table({"k": ["a", "a"], "x": [1.0, 2.0], "y": [20.0, 10.0]})
    assert compare_tables(left, right).missing_rows == 2


def test_float_noise_in_nested_values_is_accepted_and_counted() -> None:
    kind = pa.list_(pa.struct([("a", pa.float64()), ("b", pa.string())]))

    def table(x: float, y: float) -> pa.Table:
        return pa.table({"v": pa.array([[{"a": x, "b": "s"}, {"a": None, "b": None}], [{"a": y, "b": "t"}]], kind)})

    comparison = compare_tables(table(1.1, 2.2), table(noisy(1.1), noisy(2.2)))
    assert comparison.equal, comparison.describe()
    assert comparison.float_tolerance_count == 2
    assert not compare_tables(table(1.1, 2.2), table(1.1, 2.3)).equal


def test_lists_are_ordered_unless_said_otherwise() -> None:
    left = pa.table({"v": [["a", "b", None], ["c"]]})
    right = pa.table({"v": [[None, "b", "a"], ["c"]]})
    assert not compare_tables(left, right).equal
    unordered = CompareOptions(unordered_lists=True)
    assert compare_tables(left, right, unordered).equal
    assert not compare_tables(left, pa.table({"v": [["a", "b", "b"], ["c"]]}), unordered).equal


def test_unordered_lists_of_noisy_floats() -> None:
    left, right = pa.table({"v": [[1.0, 2.0, 2.0]]}), pa.table({"v": [[noisy(2.0), 1.0, 2.0]]})
    assert compare_tables(left, right, CompareOptions(unordered_lists=True)).equal
    assert not compare_tables(left, pa.table({"v": [[1.0, 1.0, 2.0]]}), CompareOptions(unordered_lists=True)).equal


def test_declared_order_is_checked_and_ties_are_free() -> None:
    keys = [OrderKey("a", column=0)]
    left = pa.table({"a": [1, 1, 2], "b": ["x", "y", "z"]})
    assert compare_tables(left, pa.table({"a": [1, 1, 2], "b": ["y", "x", "z"]}), order=keys).equal
    swapped = compare_tables(left, pa.table({"a": [1, 2, 1], "b": ["x", "z", "y"]}), order=keys)
    assert [d.kind for d in swapped.differences] == ["order"]
    assert "row 1 (a=2) comes before row 2 (a=1)" in swapped.describe()


def test_nanosecond_times_are_shown() -> None:
    left = pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC")), "d": pa.array([1], pa.duration("ns"))})
    right = pa.table({"t": pa.array([2], pa.timestamp("ns", "UTC")), "d": pa.array([1], pa.duration("ns"))})
    assert "1970-01-01 00:00:00.000000001Z" in compare_tables(left, right).describe()


def big(rows: int, *, noise: bool) -> pa.Table:
    numbers = random.Random(0)
    values = [numbers.random() for _ in range(rows)]
    return pa.table(
        {
            "k": [f"key {i % 5000}" for i in range(rows)],
            "i": range(rows),
            "x": [noisy(value) for value in values] if noise else values,
            "y": [noisy(value * 7) if noise else value * 7 for value in values],
        }
    ).cast(pa.schema([("k", pa.string_view()), ("i", pa.int64()), ("x", pa.float64()), ("y", pa.float64())]))


@pytest.mark.parametrize("noise", [False, True])
def test_a_hundred_thousand_rows_are_quick(noise: bool) -> None:
    left, right = big(100_000, noise=False), big(100_000, noise=noise)
    start = time.process_time()
    comparison = compare_tables(left, right)
    seconds = time.process_time() - start
    assert comparison.equal
    assert (comparison.float_tolerance_count > 100_000) is noise
    assert seconds < 20, f"took {seconds:.1f} s"


def test_many_noisy_rows_without_an_exact_column_are_paired() -> None:
    left, right = (big(20_000, noise=noise).select(["x", "y"]) for noise in (False, True))
    assert compare_tables(left, right).equal
    wrong = pa.concat_tables([right.slice(1), pa.table({"x": [0.5], "y": [123.0]})])
    comparison = compare_tables(left, wrong)
    assert (comparison.missing_rows, comparison.extra_rows) == (1, 1)
