"""The numbers and the list of functions of docs/spark-dialect.md are those of the tests and of the code."""

from __future__ import annotations

import re

from sparkfusion.dialect.function_calls import function_names
from tests.docs.snippets import ROOT
from tests.spark.dialect.expressions import GROUPS
from tests.spark.dialect.failures import FAILURES
from tests.spark.dialect.refused import REFUSED
from tests.spark.dialect.shapes import SHAPES

PAGE = ROOT / "docs" / "spark-dialect.md"


def test_counts_are_those_of_the_suite() -> None:
    counts = dict(re.findall(r"^\| ([a-zA-Z ,]+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE))
    assert {name: int(count) for name, count in counts.items()} == {
        "expressions, equal": sum(len(group.expressions) for group in GROUPS.values()),
        "whole queries, equal": sum(len(queries) for queries in SHAPES.values()),
        "fail in Spark, and fail here": len(FAILURES),
        "refused by name": len(REFUSED),
        "different": 0,
    }


def test_every_function_is_listed() -> None:
    listed = PAGE.read_text().split("## Functions")[1]
    assert re.findall(r"`(\w+)`", listed) == function_names()
