"""Translate regular expressions of Java, which Spark uses, into those of Rust, which DataFusion uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkfusion.dialect.refusals import refuse
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import kind_of

_REFUSED = (
    (re.compile(r"\(\?(?:<?[=!])"), "it looks ahead or behind"),
    (re.compile(r"\(\?>|[*+?}]\+"), "it has a possessive quantifier or an atomic group"),
    (re.compile(r"\\[1-9]|\\k<"), "it refers back to a group"),
    (re.compile(r"\[[^\]]*(?:&&|--|~~|\[)"), "it has a class inside a class"),
    (
        re.compile(r"\\[GZzQEhHvVRXuNc0]"),
        "it has an escape that Rust does not have, or that means something else there",
    ),
    (re.compile(r"\\[pP]"), "Unicode classes have other names"),
    (re.compile(r"\(\?[a-zA-Z-]+[:)]"), "flags mean something else in Rust"),
)
_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_ASCII = {"w": "[0-9A-Za-z_]", "d": "[0-9]", "s": r"[ \t\n\x0B\f\r]"}
_ASCII |= {"W": "[^0-9A-Za-z_]", "D": "[^0-9]", "S": r"[^ \t\n\x0B\f\r]"}
_INSIDE = {"w": "0-9A-Za-z_", "d": "0-9", "s": r" \t\n\x0B\f\r"}


def checked_pattern(pattern: Typed, what: str, *, finds: bool = False) -> Typed:
    r"""The pattern in Rust's syntax. In Java, `\d`, `\w` and `\s` match only ASCII.

    Raises if it is not a literal, or has a part that means something else in Rust.

    Args:
        finds: whether only a match is asked for, and not its text.
    """
    if not isinstance(pattern.value, str) or kind_of(pattern.type) != "string":
        raise refuse(
            f"{what} with a pattern that is not a literal", "it cannot be checked that Rust reads it like Java"
        )
    shown = f"{what} with the pattern {pattern.value!r}"
    for found, why in _REFUSED:
        if found.search(pattern.value):
            raise refuse(shown, why)
    text = "".join(_rust_parts(pattern.value, shown, finds=finds))
    return Typed("'" + text.replace("'", "''") + "'", pattern.type, text, constant=True)


def count_groups(pattern: str) -> int:
    r"""How many groups a pattern has.

    >>> count_groups(r"(a)(?:b)\((c)")
    2
    """
    plain = re.sub(r"\\.|\[[^\]]*\]", "", pattern)
    return len(re.findall(r"\((?!\?)|\(\?<[A-Za-z]", plain))


def _rust_parts(pattern: str, shown: str, *, finds: bool) -> Iterator[str]:
    inside, position = False, 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\" and position + 1 < len(pattern):
            yield _escape(pattern[position + 1], shown, inside=inside)
            position += 2
            continue
        position += 1
        if character == "." and not inside:
            character = f"[^{_LINE_ENDS}]"
        elif character == "$" and not inside:
            if pattern[position:] or not finds:
                raise refuse(shown, "$ also matches before a line end in Java")
            character = rf"(?:\r\n|[{_LINE_ENDS}])?$"
        elif character == "[":
            inside = True
        elif character == "]":
            inside = False
        yield character


def _escape(escaped: str, shown: str, *, inside: bool) -> str:
    if inside and escaped in "WDS":
        raise refuse(shown, "it has a negated class inside a class")
    if escaped in "bB":
        raise refuse(shown, "word boundaries differ outside of ASCII")
    if escaped in "<>":
        return escaped  # word boundaries in Rust
    return (_INSIDE if inside else _ASCII).get(escaped, "\\" + escaped)


def checked_replacement(text: object, what: str) -> str:
    """A replacement in Rust's syntax: `$1` of Java is `${1}` there."""
    if not isinstance(text, str):
        raise refuse(f"{what} with a replacement that is not a literal", "it cannot be checked")
    if "\\" in text or re.search(r"\$(?!\d)", text):
        raise refuse(f"{what} with the replacement {text!r}", "it has a backslash, or a $ without a number")
    return re.sub(r"\$(\d)", r"${\1}", text)
