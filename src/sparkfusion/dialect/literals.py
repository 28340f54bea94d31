"""Literals of Spark in DataFusion's dialect, with the types that Spark gives them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.refusals import wrong
from sparkfusion.dialect.typed_sql import NULL, Typed
from sparkfusion.dialect.value_types import STRING, TIMESTAMP


def text_literal(text: str) -> Typed:
    return Typed("'" + text.replace("'", "''") + "'", STRING, text, constant=True)


def number_literal(text: str) -> Typed:
    """An integer literal is an int if it fits; one with a point is a decimal, one with an exponent a double."""
    if "e" in text.lower():
        return Typed(f"cast({text} as double)", pa.float64(), float(text), constant=True)
    if "." in text:
        value = Decimal(text)
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        kind = pa.decimal128(max(len(digits), scale), scale)
        return Typed(f"cast('{text}' as decimal({kind.precision}, {scale}))", kind, value, constant=True)
    number = int(text)
    for kind, name, bits in ((pa.int32(), "int", 31), (pa.int64(), "bigint", 63)):
        if -(2**bits) <= number < 2**bits:
            return Typed(f"cast({number} as {name})", kind, number, constant=True)
    digits_of = len(str(abs(number)))
    return Typed(f"cast('{number}' as decimal({digits_of}, 0))", pa.decimal128(digits_of, 0), constant=True)


def value_literal(name: str, value: object) -> Typed:
    """The value of a parameter."""
    match value:
        case None:
            return NULL
        case bool():
            return Typed("true" if value else "false", pa.bool_(), constant=True)
        case int():
            return number_literal(str(value))
        case float():
            return Typed(f"cast('{value!r}' as double)", pa.float64(), value, constant=True)
        case Decimal() if value.is_finite():
            digits = f"{value:f}"
            return number_literal(digits if "." in digits else f"{digits}.")
        case str():
            return text_literal(value)
        case datetime():
            at = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return convert(text_literal(at.isoformat(sep=" ")), TIMESTAMP)
        case date():
            return convert(text_literal(value.isoformat()), pa.date32())
        case _:
            raise wrong(f"parameter {name!r} has a value of type {type(value).__qualname__}, which has no literal")
