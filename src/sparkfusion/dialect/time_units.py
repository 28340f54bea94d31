"""Intervals that are added to dates and timestamps, and the units of `trunc` and `date_trunc`."""

from __future__ import annotations

import re

from sqlglot import exp

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.spark_parser import spark_text
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import TIMESTAMP, kind_of

_UNIT = re.compile(r"(year|month|week|day|hour|minute|second)s?", re.IGNORECASE)
_OF_DATES = ("year", "month", "week", "day")
_WHOLE = re.compile(r"[+-]?\d+")


def add_interval(value: Typed, interval: exp.Interval, sign: str) -> Typed:
    """A date or timestamp plus or minus an interval. A date with hours becomes a timestamp, as in Spark."""
    amount, unit = _parts(interval)
    if kind_of(value.type) == "string":
        raise refuse(f"{sign} of a string and an interval", "its type is not known", "cast the string to a timestamp")
    if kind_of(value.type) not in ("date", "timestamp"):
        raise wrong(f"{spark_text(interval)} cannot be added to {value.type}")
    if kind_of(value.type) == "date" and unit not in _OF_DATES:
        value = convert(value, TIMESTAMP)
    return Typed(f"({value.sql} {sign} interval '{amount} {unit}')", value.type)


def _parts(interval: exp.Interval) -> tuple[str, str]:
    unit = _UNIT.fullmatch(interval.args["unit"].name if interval.args.get("unit") is not None else "")
    amount = interval.this
    negative = isinstance(amount, exp.Neg)
    text = (amount.this if negative else amount).name if amount is not None else ""
    if unit is None or not _WHOLE.fullmatch(text.strip()):
        raise refuse(spark_text(interval), "only whole numbers of one unit are added", "write interval '3' day")
    return str(-int(text) if negative else int(text)), unit[1].lower()
