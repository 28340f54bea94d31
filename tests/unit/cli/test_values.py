from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion.cli.values import encode, plain, text

NS = 1_600_000_000_123_456_789


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None], pa.int8()), [1, None]),
        (pa.array([True, None]), [True, None]),
        (pa.array(["a", None], pa.string_view()), ["a", None]),
        (pa.array([b"\x00\xff", None], pa.binary_view()), ["00ff", None]),
        (pa.array([Decimal("1.10"), None], pa.decimal128(5, 2)), [Decimal("1.10"), None]),
        (pa.array([NS, None]).cast(pa.timestamp("ns")), ["2020-09-13 12:26:40.123456789", None]),
        (pa.array([NS, None]).cast(pa.timestamp("ns", "UTC")), ["2020-09-13 12:26:40.123456789Z", None]),
        (pa.array([1, None], pa.int32()).cast(pa.date32()), ["1970-01-02", None]),
        (pa.array([5, None]).cast(pa.duration("ms")), ["5 ms", None]),
        (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), ["1 mons 2 days 3 ns", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.compute.run_end_encode(pa.array(["a", "a", "b"])), ["a", "a", "b"]),
        (pa.array([[1, None], None, []], pa.list_(pa.int64())), [[1, None], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), [[1, 2], None]),
        (pa.array([[1], None], pa.list_view(pa.int64())), [[1], None]),
        (pa.array([{"a": 1}, None, {"a": None}]), [{"a": 1}, None, {"a": None}]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), [{"k": 1}, None]),
        (pa.array([[NS], None]).cast(pa.list_(pa.timestamp("ns"))), [["2020-09-13 12:26:40.123456789"], None]),
        (pa.nulls(2), [None, None]),
        (pa.array([1, 2, 3])[1:], [2, 3]),
        (pa.array([{"a": 1}, {"a": 2}])[1:], [{"a": 2}]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_columns_become_plain_values(column: pa.Array, expected: list[Any]) -> None:
    assert plain(column) == expected


@pytest.mark.parametrize(
    ("value", "json", "shown"),
    [
        (None, "null", "null"),
        (True, "true", "true"),
        (2**63 - 1, "9223372036854775807", "9223372036854775807"),
        (0.1, "0.1", "0.1"),
        (float("nan"), '"NaN"', "NaN"),
        (float("-inf"), '"-Infinity"', "-Infinity"),
        (Decimal("1E+3"), "1000", "1000"),
        (Decimal("0.1000000000000000000000001"), "0.1000000000000000000000001", "0.1000000000000000000000001"),
        ('say "é"', '"say \\"é\\""', 'say "é"'),
        ([1, None, "a"], '[1,null,"a"]', '[1,null,"a"]'),
        ({"k": [Decimal("1.0")]}, '{"k":[1.0]}', '{"k":[1.0]}'),
    ],
)
def test_values_become_json_and_text(value: Any, json: str, shown: str) -> None:
    assert encode(value) == json
    assert text(value) == shown
