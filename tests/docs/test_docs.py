"""The documentation is part of the product: its snippets run, its links lead somewhere, its tables are current."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.settings_page import PAGE, render

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^\$ (sparkfusion .*)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)")


@pytest.fixture
def lineitem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table that the snippets speak of, in a few files, in the current directory."""
    directory = tmp_path / "data" / "lineitem"
    directory.mkdir(parents=True)
    for number in range(3):
        rows = range(number * 50_000, (number + 1) * 50_000)
        table = pa.table(
            {
                "l_orderkey": [row // 4 for row in rows],
                "l_returnflag": ["ANR"[row % 3] for row in rows],
                "l_quantity": [float(row % 50) for row in rows],
                "l_comment": [f"comment {row}" for row in rows],
            }
        )
        pq.write_table(table, directory / f"{number}.parquet")
    (tmp_path / "queries.sql").write_text("select l_returnflag, count(*) from lineitem group by 1;")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WITH_SNIPPETS = [page for page in PAGES if _SNIPPET.search(page.read_text())]


@pytest.mark.parametrize("page", [p for p in WITH_SNIPPETS if p.name != "spark.md"], ids=lambda p: p.name)
@pytest.mark.usefixtures("lineitem")
def test_the_python_snippets_of_a_page_run_in_order(page: Path) -> None:
    run_snippets(page)


@pytest.mark.usefixtures("lineitem")
def test_the_python_snippets_about_spark_run_in_order(spark: SparkSession) -> None:
    run_snippets(ROOT / "docs" / "spark.md", spark)
    assert list(Path("out").glob("*.parquet"))


def run_snippets(page: Path, spark: SparkSession | None = None) -> None:
    import sparkfusion

    with sparkfusion.connect(spark) as session, contextlib.redirect_stdout(io.StringIO()) as printed:
        session.register_parquet("lineitem", "data/lineitem/")
        names: dict[str, object] = {"session": session, "spark": spark}
        for snippet in _SNIPPET.findall(page.read_text()):
            exec(compile(snippet, str(page), "exec"), names)
        opened = names["session"]
        if isinstance(opened, sparkfusion.Session):
            opened.close()
    assert printed.getvalue()


@pytest.mark.parametrize("page", [page for page in PAGES if _CONSOLE.search(page.read_text())], ids=lambda p: p.name)
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
