"""Values of every type family, from small pools that all tables share, so that joins find partners."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.fuzz.kinds import Family

WORDS = (
    "b",
    "a",
    "",
    "aa",
    "B",
    "Zürich",
    "longer than twelve bytes",
    "longer than twelve bytes too",
    "null",
    "0",
    "12",
    "a,b;'c'",
    " b ",
    "%_",
)
_BYTES = (b"ab", b"\x00", b"", b"\xff\xfe", b"zz", b"longer than twelve bytes")
_INT_LISTS: tuple[list[int | None], ...] = ([1, 2], [], [1], [None], [3, 3, None], [0, 1, 2, 3, 4], [2])
_TEXT_LISTS: tuple[list[str | None], ...] = (["a"], [], ["b", "a"], [None], ["longer than twelve bytes", ""], ["b"])
_FIRST_DAY = dt.date(2024, 1, 30)
_FIRST_MOMENT = dt.datetime(2024, 3, 30, 22, 30)  # half-way to the night in which Paris changes its clocks
_EXTREMES = {8: 127, 16: 32_767, 32: 2_147_483_647}


@dataclass(frozen=True)
class Flavour:
    """How the values of one column are spread.

    Floats are multiples of a quarter and of small magnitude, so every sum of them is exact and does not depend on the
    order of its terms. A column holds NaN or infinities, never both: their sum would be a NaN whose sign, and with it
    its place in a sort, depends on the order.
    """

    pool: int  # how many different values
    null_share: float
    skewed: bool
    special: str  # "", "nan", "inf", "zero": what floats also hold; anything else but "": extremes for integers


def column_values(type_: pa.DataType, family: Family, flavour: Flavour, rows: int, seed: str) -> list[Any]:
    """The values of a column. Row i does not depend on how many rows follow, so fewer rows are a prefix."""
    return [_cell(type_, family, flavour, random.Random(f"{seed}/{row}")) for row in range(rows)]


def _cell(type_: pa.DataType, family: Family, flavour: Flavour, rng: random.Random) -> Any:
    if rng.random() < flavour.null_share:
        return None
    position = rng.random()
    if flavour.skewed:
        position = position**4
    index = int(position * flavour.pool)
    if flavour.special and rng.random() < 0.15:
        extreme = _special(type_, family, flavour, rng)
        if extreme is not None:
            return extreme
    return _pooled(type_, family, index)


def _special(type_: pa.DataType, family: Family, flavour: Flavour, rng: random.Random) -> Any:
    if family is Family.FLOAT:
        return {"nan": float("nan"), "inf": rng.choice((float("inf"), float("-inf")))}.get(flavour.special, -0.0)
    if family is Family.INT and pa.types.is_signed_integer(type_) and type_.bit_width in _EXTREMES:
        return rng.choice((_EXTREMES[type_.bit_width], -_EXTREMES[type_.bit_width] - 1))
    return None


def _pooled(type_: pa.DataType, family: Family, index: int) -> Any:
    match family:
        case Family.INT:
            return index - 1 if pa.types.is_signed_integer(type_) else index
        case Family.FLOAT:
            return (index - 2) / 4
        case Family.DECIMAL:
            return Decimal(index - 2) * Decimal("1.25")
        case Family.BOOL:
            return index % 2 == 0
        case Family.DATE:
            return _FIRST_DAY + dt.timedelta(days=index)
        case Family.TIMESTAMP:
            return _FIRST_MOMENT + dt.timedelta(minutes=45 * index)
        case Family.INSTANT:
            return (_FIRST_MOMENT + dt.timedelta(minutes=45 * index)).replace(tzinfo=dt.UTC)
        case Family.STRUCT:
            return {"a": None if index % 3 == 2 else index, "b": None if index % 4 == 3 else WORDS[index % 3]}
        case _:
            pool = {
                Family.TEXT: WORDS,
                Family.BINARY: _BYTES,
                Family.INT_LIST: _INT_LISTS,
                Family.TEXT_LIST: _TEXT_LISTS,
            }
            return pool[family][index % len(pool[family])]
