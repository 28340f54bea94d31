"""The page of methods that are not here names exactly those, of the installed DataFusion."""

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
