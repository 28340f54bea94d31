"""How a function of Spark is written: a template for DataFusion, the types of its arguments, and the type of its
result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.refusals import wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import STRING, TIMESTAMP, cast_sql, is_number, kind_of

_TARGETS: Mapping[str, pa.DataType] = {
    "s": STRING,
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "b": pa.bool_(),
    "D": pa.date32(),
    "t": TIMESTAMP,
}
"""The letters for argument types: string, int, bigint, double, boolean, date, timestamp. Other letters: number, array,
map, and x for any type."""

Special = Callable[[list[Typed]], Typed]


@dataclass(frozen=True)
class Form:
    """One way to call a function. `takes` has a letter for each argument.

    Attributes:
        template: the call, with `{0}` for the first argument.
        gives: the type of the result. `cast`: whether DataFusion's result has another type and must be cast.
    """

    template: str
    takes: str
    gives: pa.DataType
    cast: bool = False

    def write(self, name: str, arguments: Sequence[Typed]) -> Typed:
        values = [prepare(each, letter, name) for each, letter in zip(arguments, self.takes, strict=True)]
        sql = self.template.format(*(each.sql for each in values))
        return Typed(cast_sql(sql, self.gives) if self.cast else sql, self.gives)


def prepare(value: Typed, letter: str, name: str) -> Typed:
    """Convert an argument to the type of its letter."""
    kind = kind_of(value.type)
    if letter == "x" or (kind == "null" and letter in "am"):
        return value
    if letter == "n":
        if kind in ("null", "string"):
            return convert(value, pa.float64())
        if is_number(value.type):
            return value
    elif letter in "am":
        if kind == {"a": "array", "m": "map"}[letter]:
            return value
    elif (
        kind in ("array", "map", "struct", "interval")
        or (letter == "b" and kind not in ("boolean", "null"))
        or (letter in "il" and kind not in ("integer", "string", "null"))
    ):
        pass
    else:
        return convert(value, _TARGETS[letter])
    raise wrong(f"{name} does not take {value.type}", "cast the argument")


def choose_form(name: str, forms: Sequence[Form], arguments: Sequence[Typed]) -> Form:
    for form in forms:
        if len(form.takes) == len(arguments):
            return form
    counts = " or ".join(str(len(form.takes)) for form in forms)
    raise wrong(f"{name} takes {counts} arguments, not {len(arguments)}")


def expect(name: str, arguments: Sequence[Typed], *counts: int) -> None:
    if len(arguments) not in counts:
        raise wrong(f"{name} takes {' or '.join(map(str, counts))} arguments, not {len(arguments)}")
