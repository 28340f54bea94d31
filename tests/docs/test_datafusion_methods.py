"""The page of methods that are not here names exactly those, of the installed DataFusion. It lists every alias."""

from __future__ import annotations

import re

import datafusion
import pytest

import sparkfusion
from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "datafusion-methods.md"


def listed(heading: str) -> list[str]:
    part = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [name for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(datafusion.SessionContext, sparkfusion.Session), (datafusion.DataFrame, sparkfusion.DataFrame)],
)
def test_every_method_that_is_not_here_is_listed_once(theirs: type, ours: type) -> None:
    assert sorted(listed(theirs.__name__)) == sorted(public(theirs) - public(ours))


def test_every_name_of_the_package_that_is_not_here_is_listed_once() -> None:
    assert sorted(listed("The package")) == sorted(set(datafusion.__all__) - set(sparkfusion.__all__))


def test_expressions_and_functions_are_datafusions_own() -> None:
    """So nothing of them can be missing."""
    assert sparkfusion.Expr is datafusion.Expr
    assert sparkfusion.functions is datafusion.functions


def test_every_alias_is_listed() -> None:
    aliases = {name for name in public(sparkfusion.DataFrame) if name.lower() != name} | {"where", "columns"}
    part = PAGE.read_text().split("## Names of PySpark\n")[1].split("\n## ")[0]
    stands_for = dict(re.findall(r"^\| `(\w+)` \| (?:`(\w+)`)?", part, re.MULTILINE))
    assert set(stands_for) == aliases
    same = {alias: name for alias, name in stands_for.items() if name}
    assert len(same) == 6
    for alias, name in same.items():
        assert getattr(sparkfusion.DataFrame, alias) is getattr(sparkfusion.DataFrame, name)
