"""The site of the documentation: it is built without a warning, has every page and every public name, and loads nothing
from a network."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import sparkfusion
from sparkfusion import feeds, verify
from tests.docs.snippets import ROOT
from tools import docs_site, made_methods

pytestmark = pytest.mark.long  # it builds the site

_TAGS_THAT_LOAD = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_IMPORT = re.compile(r"(?:@import|url\()\s*['\"]?(https?:)?//")


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run mkdocs as `make docs` does. With --quiet it would count no warnings, and so never fail."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    built = build(ROOT / "mkdocs.yml", directory)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return directory


class Tags(HTMLParser):
    """The tags of a page that matter here."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if (name := _TAGS_THAT_LOAD.get(tag)) is not None:
            self.loaded.append(given.get(name) or "")


def test_every_page_of_the_repository_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    pages += [Path("README.html"), Path("changelog.html"), Path("examples/README.html"), Path("examples/listing.html")]
    named = [path.with_name("index.html") if path.stem == "README" else path for path in pages]
    assert [str(path) for path in named if not (site / path).exists()] == []


def test_the_reference_shows_every_public_name(site: Path) -> None:
    shown = {name for page in (site / "api").glob("*.html") for name in Tags(page).ids}
    public = {f"sparkfusion.{name}" for name in sparkfusion.__all__}
    public |= {f"sparkfusion.feeds.{name}" for name in feeds.__all__}
    public |= {f"sparkfusion.verify.{name}" for name in verify.__all__}
    methods = {
        f"sparkfusion.{kind.__name__}.{name}"
        for kind in (sparkfusion.Session, sparkfusion.DataFrame, sparkfusion.RunningQuery)
        for name in dir(kind)
        if not name.startswith("_")
    }
    assert public | methods <= shown, sorted((public | methods) - shown)


def test_methods_that_are_made_at_run_time_have_arguments_and_a_text(site: Path) -> None:
    page = (site / "api" / "session.html").read_text()
    part = page.split('id="sparkfusion.Session.register_csv"')[1].split('id="sparkfusion.Session.register_dataset"')[0]
    text = re.sub(r"<[^>]+>", "", part)
    assert "has_header" in text
    assert "Register a CSV file as a table." in text
    assert "leave out lines that cannot be read" in text  # of our own argument
    assert "_register(" not in text
    frames = (site / "api" / "dataframe.html").read_text().split('id="sparkfusion.DataFrame.to_arrow_table"')[1]
    assert "Table" in re.sub(r"<[^>]+>", "", frames)[:400]  # a second name of a method, with its signature


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 80
    outside = {str(page.relative_to(site)): [url for url in Tags(page).loaded if "//" in url] for page in pages}
    assert {page: urls for page, urls in outside.items() if urls} == {}
    assert [str(sheet) for sheet in site.rglob("*.css") if _IMPORT.search(sheet.read_text())] == []


def test_lists_and_tables_are_not_left_as_text(site: Path) -> None:
    """Markdown on GitHub takes a list right after a line of text, and mkdocs does not."""
    left = {
        str(page.relative_to(site)): found
        for page in sorted(site.rglob("*.html"))
        if (found := re.findall(r"^(?:<p>)?(?:- \S|\|[^|]+\|).{0,40}", page.read_text(), re.MULTILINE))
        and page.parent.name != "examples"
    }
    assert left == {}


@pytest.mark.parametrize("module", [docs_site, made_methods], ids=lambda module: module.__name__)
def test_the_examples_of_the_tools_are_right(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize("link", ["missing.md", "index.md#missing"])
def test_a_broken_link_fails_the_build(tmp_path: Path, link: str) -> None:
    config = yaml.unsafe_load((ROOT / "mkdocs.yml").read_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# One\n\n[two]({link})\n")
    kept = {name: config[name] for name in ("site_name", "validation", "strict")}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(kept))
    built = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert built.returncode != 0
    assert link.removeprefix("index.md") in built.stderr
