"""Translate date patterns of Java, which Spark uses, into those of chrono, which DataFusion uses."""

from __future__ import annotations

import re

from sparkfusion.dialect.refusals import refuse

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_PRINTED = {
    "yyyy": "%Y", "uuuu": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B", "dd": "%d",
    "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M", "ss": "%S", "s": "%-S",
    "a": "%p", "EEE": "%a", "E": "%a", "EEEE": "%A", "D": "%-j", "DDD": "%j", "SSS": "%3f", "SSSSSS": "%6f",
}  # fmt: skip
_READ = {
    "yyyy": ("%Y", r"\d{4}"), "MM": ("%m", r"\d{2}"), "dd": ("%d", r"\d{2}"), "HH": ("%H", r"\d{2}"),
    "mm": ("%M", r"\d{2}"), "ss": ("%S", r"\d{2}"),
}  # fmt: skip


def printing_pattern(pattern: object, what: str) -> str:
    """The pattern for `to_char`.

    >>> printing_pattern("dd.MM.yyyy 'at' HH:mm", "date_format")
    '%d.%m.%Y at %H:%M'
    """
    made = []
    for token, text in _tokens(pattern, what):
        if text is not None:
            made.append(text.replace("%", "%%"))
        elif token in _PRINTED:
            made.append(_PRINTED[token])
        else:
            raise refuse(f"{what} with {token!r} in its pattern", "DataFusion has no equivalent")
    return "".join(made)


def reading_pattern(pattern: object, what: str) -> tuple[str, str]:
    """The pattern for `to_date` and `to_timestamp`, and a regular expression for the texts that Spark accepts.

    >>> reading_pattern("yyyy-MM-dd", "to_date")
    ('%Y-%m-%d', '^[0-9]{4}\\\\-[0-9]{2}\\\\-[0-9]{2}$')
    """
    made, expected, seen = [], [], []
    for token, text in _tokens(pattern, what):
        if text is not None:
            made.append(text.replace("%", "%%"))
            expected.append(re.escape(text))
            continue
        if token not in _READ or token in seen:
            raise refuse(f"{what} with {token!r} in its pattern", "only yyyy, MM, dd, HH, mm and ss are supported")
        seen.append(token)
        made.append(_READ[token][0])
        expected.append(_READ[token][1].replace(r"\d", "[0-9]"))
    if not {"yyyy", "MM", "dd"} <= set(seen):
        raise refuse(f"{what} with the pattern {pattern!r}", "it needs a year, a month and a day")
    return "".join(made), f"^{''.join(expected)}$"


def _tokens(pattern: object, what: str) -> list[tuple[str, str | None]]:
    """The groups of letters of a pattern, and the literal texts between them."""
    if not isinstance(pattern, str):
        raise refuse(f"{what} with a pattern that is not a literal", "it cannot be translated")
    found: list[tuple[str, str | None]] = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise refuse(f"{what} with the pattern {pattern!r}", "a quote is not closed")
        position = token.end()
        if token[2] is not None:
            found.append((token[0], None))
        else:
            text = token[0] if token[1] is None else token[1].replace("''", "'") or "'"
            if any(mark in text for mark in "[]{}#") and token[1] is None:
                raise refuse(f"{what} with the pattern {pattern!r}", "it has optional parts")
            found.append((token[0], text))
    return found
