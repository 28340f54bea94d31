"""Spark's functions of dates and timestamps, in the time zone UTC."""

from __future__ import annotations

import pyarrow as pa

from sparkfusion.dialect.date_patterns import printing_pattern, reading_pattern
from sparkfusion.dialect.function_forms import Form, Special, expect, prepare
from sparkfusion.dialect.refusals import refuse
from sparkfusion.dialect.typed_sql import Typed, failing_sql
from sparkfusion.dialect.value_types import STRING, TIMESTAMP, cast_sql, kind_of

_INT, _DATE = pa.int32(), pa.date32()
_MICROS = "arrow_cast({0}, 'Int64')"
_SECONDS = "({0} - (({0} % 1000000) + 1000000) % 1000000) / 1000000".replace("{0}", _MICROS)


def _part(word: str, takes: str = "D") -> tuple[Form, ...]:
    return (Form(f"date_part('{word}', {{0}})", takes, _INT, cast=True),)


_DAY_OF_WEEK = (Form("date_part('dow', {0}) + 1", "D", _INT, cast=True),)

TIME_FORMS: dict[str, tuple[Form, ...]] = {
    "year": _part("year"),
    "quarter": _part("quarter"),
    "month": _part("month"),
    "day": _part("day"),
    "dayofmonth": _part("day"),
    "dayofyear": _part("doy"),
    "weekofyear": _part("week"),
    "dayofweek": _DAY_OF_WEEK,
    "weekday": (Form("(date_part('dow', {0}) + 6) % 7", "D", _INT, cast=True),),
    "hour": _part("hour", "t"),
    "minute": _part("minute", "t"),
    "second": _part("second", "t"),
    "date_add": (Form("({0} + {1})", "Di", _DATE),),
    "dateadd": (Form("({0} + {1})", "Di", _DATE),),
    "date_sub": (Form("({0} - {1})", "Di", _DATE),),
    "datediff": (Form("({0} - {1})", "DD", _INT, cast=True),),
    "date_diff": (Form("({0} - {1})", "DD", _INT, cast=True),),
    "add_months": (Form("add_months({0}, {1})", "Di", _DATE),),
    "last_day": (Form("last_day({0})", "D", _DATE),),
    "next_day": (Form("next_day({0}, {1})", "Ds", _DATE),),
    "make_date": (Form("make_date({0}, {1}, {2})", "iii", _DATE),),
    "unix_date": (Form("arrow_cast({0}, 'Int32')", "D", _INT),),
    "date_from_unix_date": (Form("arrow_cast({0}, 'Date32')", "i", _DATE),),
    "unix_seconds": (Form(_SECONDS, "t", pa.int64()),),
    "unix_micros": (Form(_MICROS, "t", pa.int64()),),
    "timestamp_seconds": (Form(cast_sql("({0} * 1000000)", TIMESTAMP), "l", TIMESTAMP),),
    "timestamp_millis": (Form(cast_sql("({0} * 1000)", TIMESTAMP), "l", TIMESTAMP),),
    "timestamp_micros": (Form(cast_sql("{0}", TIMESTAMP), "l", TIMESTAMP),),
    "current_date": (Form("current_date()", "", _DATE),),
    "curdate": (Form("current_date()", "", _DATE),),
    "current_timestamp": (Form("now()", "", TIMESTAMP, cast=True),),
    "now": (Form("now()", "", TIMESTAMP, cast=True),),
}
_PARTS = {
    "year": "year", "years": "year", "yr": "year", "quarter": "quarter", "qtr": "quarter", "month": "month",
    "months": "month", "mon": "month", "week": "weekofyear", "weeks": "weekofyear", "w": "weekofyear", "day": "day",
    "days": "day", "d": "day", "dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear", "hour": "hour",
    "hours": "hour", "minute": "minute", "minutes": "minute", "min": "minute", "dow_iso": "weekday",
}  # fmt: skip
_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month",
    "mm": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
}  # fmt: skip
_OF_DATES = ("year", "quarter", "month", "week")


def _extract(arguments: list[Typed]) -> Typed:
    expect("date_part", arguments, 2)
    word = str(arguments[0].value).lower()
    if word not in _PARTS or word == "dow_iso":
        raise refuse(f"the part {word!r} of a date", "DataFusion has no equivalent with the same type")
    (form,) = TIME_FORMS[_PARTS[word]]
    return form.write(word, arguments[1:])


def _unit(value: object, what: str) -> str:
    unit = _UNITS.get(str(value).lower()) if isinstance(value, str) else None
    if unit is None:
        raise refuse(f"{what} to {value!r}", "it has to be the name of a unit, as a literal")
    return unit


def _trunc(arguments: list[Typed]) -> Typed:
    expect("trunc", arguments, 2)
    unit = _unit(arguments[1].value, "trunc")
    if unit not in _OF_DATES:
        raise refuse(f"trunc to {unit!r}", "Spark gives NULL", "use date_trunc")
    return Typed(f"cast(date_trunc('{unit}', {prepare(arguments[0], 'D', 'trunc').sql}) as date)", _DATE)


def _date_trunc(arguments: list[Typed]) -> Typed:
    expect("date_trunc", arguments, 2)
    value = prepare(arguments[1], "t", "date_trunc")
    made = f"date_trunc('{_unit(arguments[0].value, 'date_trunc')}', {value.sql})"
    return Typed(cast_sql(made, TIMESTAMP), TIMESTAMP)


def _date_format(arguments: list[Typed]) -> Typed:
    expect("date_format", arguments, 2)
    value = prepare(arguments[0], "t", "date_format")
    pattern = printing_pattern(arguments[1].value, "date_format").replace("'", "''")
    return Typed(f"to_char({value.sql}, '{pattern}')", STRING)


def _read(name: str, kind: pa.DataType) -> Special:
    """`to_date` and `to_timestamp`: a text that does not fit its pattern is an error."""

    def write(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 1, 2)
        value = arguments[0]
        if len(arguments) == 1 or kind_of(value.type) in ("date", "timestamp"):
            return prepare(value, "D" if kind == _DATE else "t", name)
        text = prepare(value, "s", name).sql
        pattern, expected = reading_pattern(arguments[1].value, name)
        pattern, expected = pattern.replace("'", "''"), expected.replace("'", "''")
        read = cast_sql(f"to_timestamp({text}, '{pattern}')", TIMESTAMP)
        read = f"cast({read} as date)" if kind == _DATE else read
        if "%H" not in pattern:
            read = f"to_date({text}, '{pattern}')" if kind == _DATE else cast_sql(f"to_date({text}, '{pattern}')", kind)
        wrong_text = failing_sql(f"concat('not of the pattern: ', {text})", kind, cast_sql)
        fits = f"{text} is null or regexp_like({text}, '{expected}')"
        return Typed(f"case when {fits} then {read} else {wrong_text} end", kind)

    return write


def _unix_timestamp(arguments: list[Typed]) -> Typed:
    if len(arguments) != 1 or kind_of(arguments[0].type) == "string":
        why = "strings and patterns are not supported"
        raise refuse("unix_timestamp of anything but a timestamp", why, "use unix_timestamp(to_timestamp(…))")
    return Typed(_SECONDS.format(prepare(arguments[0], "t", "unix_timestamp").sql), pa.int64())


def _from_unixtime(arguments: list[Typed]) -> Typed:
    expect("from_unixtime", arguments, 1, 2)
    pattern = printing_pattern(arguments[1].value if len(arguments) == 2 else "yyyy-MM-dd HH:mm:ss", "from_unixtime")
    seconds = prepare(arguments[0], "l", "from_unixtime").sql
    return Typed(f"to_char({cast_sql(f'({seconds} * 1000000)', TIMESTAMP)}, '{pattern}')", STRING)


TIME_SPECIALS: dict[str, Special] = {
    "date_part": _extract,
    "datepart": _extract,
    "extract": _extract,
    "trunc": _trunc,
    "date_trunc": _date_trunc,
    "date_format": _date_format,
    "to_date": _read("to_date", _DATE),
    "to_timestamp": _read("to_timestamp", TIMESTAMP),
    "unix_timestamp": _unix_timestamp,
    "to_unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
}
