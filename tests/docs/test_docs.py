"""The documentation is part of the product: its snippets run, its links lead somewhere, its tables are current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.settings_page import PAGE, render
from tests.docs.snippets import PAGES, ROOT, SNIPPET, run_snippets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONSOLE = re.compile(r"^\$ (sparkfusion .*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
_ON_THEIR_OWN = ("spark.md", "flight.md")  # they need a Spark session, and workers (test_flight_page.py)
EMBEDDED = [page for page in PAGES if page.name not in _ON_THEIR_OWN]


@pytest.mark.parametrize("page", [p for p in EMBEDDED if SNIPPET.search(p.read_text())], ids=lambda p: p.name)
@pytest.mark.usefixtures("lineitem")
def test_the_python_snippets_of_a_page_run_in_order(page: Path) -> None:
    run_snippets(page)


@pytest.mark.usefixtures("lineitem")
def test_the_python_snippets_about_spark_run_in_order(spark: SparkSession) -> None:
    run_snippets(ROOT / "docs" / "spark.md", spark)
    assert list(Path("out").glob("*.parquet"))


@pytest.mark.parametrize("page", [p for p in EMBEDDED if _CONSOLE.search(p.read_text())], ids=lambda p: p.name)
@pytest.mark.usefixtures("lineitem")
def test_the_commands_of_a_page_succeed(page: Path) -> None:
    import shlex

    from click.testing import CliRunner

    from sparkfusion.cli.app import app

    for command in _CONSOLE.findall(page.read_text()):
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}"
        assert result.output


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


def test_the_settings_page_is_current() -> None:
    assert PAGE.read_text() == render(), "python -m tests.docs.settings_page writes it anew"
