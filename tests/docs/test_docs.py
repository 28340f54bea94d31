"""The documentation is part of the product: its snippets run, its links lead somewhere, its tables are current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sparkfusion
from tests.docs.settings_page import PAGE, render
from tests.docs.snippets import PAGES, ROOT, SNIPPET, run_snippets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONSOLE = re.compile(r"^\$ (sparkfusion .*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
_ON_THEIR_OWN = (
    "accelerate.md",
    "spark.md",
    "spark-catalog.md",
    "flight.md",
    "tutorial.md",
    "object-stores.md",
)  # they need a Spark session, workers (test_flight_page.py), or a bucket (test_pages_with_servers.py)
_GOES_ON = ("verify.md",)  # after the README: with its session and its table
EMBEDDED = [page for page in PAGES if page.name not in _ON_THEIR_OWN]


@pytest.mark.parametrize("page", [p for p in EMBEDDED if SNIPPET.search(p.read_text())], ids=lambda p: p.name)
@pytest.mark.usefixtures("lineitem")
def test_the_python_snippets_of_a_page_run_in_order(page: Path) -> None:
    session = None
    if page.name in _GOES_ON:
        session = sparkfusion.connect()
        session.register_parquet("lineitem", "data/lineitem/")
    run_snippets(page, session=session)


@pytest.mark.long
@pytest.mark.usefixtures("lineitem", "spark")
def test_the_python_snippets_about_spark_run_in_order() -> None:
    run_snippets(ROOT / "docs" / "spark.md")
    assert list(Path("out").glob("*.parquet"))


@pytest.mark.long
@pytest.mark.usefixtures("lineitem", "spark")
def test_the_python_snippets_about_acceleration_run_in_order() -> None:
    printed = run_snippets(ROOT / "docs" / "accelerate.md")
    assert "True distributed: " in printed or "True not distributed: " in printed
    assert "\nequal" in printed
    assert "it has rollup, cube or grouping sets" in printed


@pytest.mark.long
def test_the_python_snippets_about_sparks_catalog_run_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        printed = run_snippets(ROOT / "docs" / "spark-catalog.md")
    finally:
        spark.sql("use default")
        spark.sql("drop database if exists shop cascade")
    assert "table shop.orders: 2 Parquet files, read by DataFusion" in printed
    assert printed.splitlines()[-1] == "142"  # ids up to 999 of day 6


@pytest.mark.parametrize("page", [p for p in EMBEDDED if _CONSOLE.search(p.read_text())], ids=lambda p: p.name)
@pytest.mark.usefixtures("lineitem")
def test_the_commands_of_a_page_succeed(page: Path) -> None:
    import shlex

    from click.testing import CliRunner

    from sparkfusion.cli.app import app

    for command in _CONSOLE.findall(page.read_text()):
        result = CliRunner().invoke(app, shlex.split(command)[1:], input="select 1;\n")  # what the shell reads
        assert result.exit_code == 0, f"{command}\n{result.output}"
        assert result.output


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert broken == []


def test_the_settings_page_is_current() -> None:
    assert PAGE.read_text() == render(), "python -m tests.docs.settings_page writes it anew"


def test_every_public_error_is_on_its_page() -> None:
    public = [getattr(sparkfusion, name) for name in sparkfusion.__all__]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, sparkfusion.SparkfusionError)]
    told = (ROOT / "docs" / "errors.md").read_text()
    assert [
        error.__name__ for error in errors if f"`{error.__name__}`" not in told and f".{error.__name__}`" not in told
    ] == []
