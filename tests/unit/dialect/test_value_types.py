"""Types that two values have in common, and types of decimals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.dialect.refusals import NotInDialectError
from sparkfusion.dialect.value_types import TIMESTAMP, common_type, kind_of, limited_decimal


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pa.int16(), pa.int64(), pa.int64()),
        (pa.int32(), pa.float32(), pa.float64()),
        (pa.float32(), pa.float32(), pa.float32()),
        (pa.decimal128(7, 2), pa.int32(), pa.decimal128(12, 2)),
        (pa.decimal128(7, 2), pa.decimal128(10, 3), pa.decimal128(10, 3)),
        (pa.decimal128(7, 2), pa.float64(), pa.float64()),
        (pa.string(), pa.int32(), pa.int64()),
        (pa.string(), pa.decimal128(7, 2), pa.float64()),
        (pa.string(), pa.date32(), pa.date32()),
        (pa.string_view(), pa.string(), pa.string_view()),
        (pa.null(), pa.int8(), pa.int8()),
        (pa.date32(), TIMESTAMP, TIMESTAMP),
        (pa.bool_(), pa.int32(), None),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
    ],
)
def test_common_type(left: pa.DataType, right: pa.DataType, expected: pa.DataType | None) -> None:
    assert common_type(left, right) == expected


def test_decimals_keep_six_digits_after_the_point() -> None:
    assert limited_decimal(38, 10) == pa.decimal128(38, 10)
    assert limited_decimal(50, 20) == pa.decimal128(38, 8)
    assert limited_decimal(60, 20) == pa.decimal128(38, 6)


def test_types_that_spark_does_not_have_are_refused() -> None:
    with pytest.raises(NotInDialectError, match="uint32"):
        kind_of(pa.uint32())
