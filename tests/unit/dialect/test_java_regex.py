"""Regular expressions of Java in Rust's syntax."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.dialect.java_regex import checked_pattern, checked_replacement, count_groups
from sparkfusion.dialect.refusals import NotInDialectError
from sparkfusion.dialect.typed_sql import Typed

LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$"


def pattern(text: str, *, finds: bool = True) -> str:
    return str(checked_pattern(Typed("", pa.string(), text, constant=True), "rlike", finds=finds).value)


@pytest.mark.parametrize(
    ("java", "rust"),
    [
        ("a+b", "a+b"),
        (r"\d{2}", "[0-9]{2}"),
        (r"[\w-]", "[0-9A-Za-z_-]"),
        (r"\.", r"\."),
        ("a.b", r"a[^\n\r\x{85}\x{2028}\x{2029}]b"),
        ("[.]", "[.]"),
        ("x$", "x" + LINE_END),
        ("it's", "it's"),
    ],
)
def test_pattern_is_written_for_rust(java: str, rust: str) -> None:
    assert pattern(java) == rust


@pytest.mark.parametrize(
    "java", ["(?=a)", "(?<!a)b", r"(a)\1", "a++", "(?>a)", "[a&&[b]]", r"\bx", r"\p{Lu}", "(?i)a", r"[\D]"]
)
def test_pattern_that_rust_reads_differently_is_refused(java: str) -> None:
    with pytest.raises(NotInDialectError):
        pattern(java)


def test_end_of_the_text_is_refused_where_the_match_is_kept() -> None:
    with pytest.raises(NotInDialectError, match="line end"):
        pattern("x$", finds=False)


def test_groups_are_counted_as_java_does() -> None:
    assert count_groups(r"(a)(?:b)[(]\((c(d))") == 3


def test_replacement() -> None:
    assert checked_replacement("<$1>", "regexp_replace") == "<${1}>"
    with pytest.raises(NotInDialectError):
        checked_replacement("\\1", "regexp_replace")
