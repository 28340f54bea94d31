"""What pages and comments refer to is in this repository: tests, pages and their sections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.snippets import PAGES, ROOT

_NUMBERED = re.compile(r"\b[Tt]raps? \d+\b|\bD\d{1,2}\b(?![\w'\"])")
_PAGE_OF_SOURCE = re.compile(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?")
_LINK = re.compile(r"\]\((?!https?://)([^)#]*)#([\w-]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MODULE = re.compile(r"`([\w/]+\.(?:py|proto))`")
_TEST = re.compile(r"`(test_\w+)`")
_PRIVATE = re.compile(r"\b_(?:jvm|jdf|jsc|jsparkSession|jrdd|gateway)\b")
_SOURCES = [path for folder in ("src", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
_NAMES_TESTS = ("traps.md", "upstream-defects.md")


def anchors(page: Path) -> set[str]:
    """The sections of a page, as links name them."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(page.read_text())}


def test_nothing_is_cited_by_the_numbers_of_another_document() -> None:
    cited = {
        str(path.relative_to(ROOT)): found
        for path in [*_SOURCES, *PAGES]
        if path != Path(__file__) and (found := _NUMBERED.findall(path.read_text()))
    }
    assert cited == {}, "name the section of docs/traps.md, or the decision in docs/adr"


def test_sources_refer_to_pages_that_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {page}#{section}"
        for path in _SOURCES
        for page, section in _PAGE_OF_SOURCE.findall(path.read_text())
        if not (ROOT / "docs" / page).exists() or (section and section not in anchors(ROOT / "docs" / page))
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_sections_lead_somewhere(page: Path) -> None:
    broken = [
        f"{link}#{section}"
        for link, section in _LINK.findall(page.read_text())
        if section not in anchors(page.parent / link if link else page)
    ]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    named = set(_MODULE.findall(page.read_text()))
    missing = {each for each in named if not (ROOT / each).exists() and not list((ROOT / "src").rglob(each))}
    assert missing == set()


@pytest.mark.parametrize("name", _NAMES_TESTS)
def test_tests_that_a_page_names_exist(name: str) -> None:
    named = set(_TEST.findall((ROOT / "docs" / name).read_text()))
    defined = {
        found
        for path in (ROOT / "tests").rglob("test_*.py")
        for found in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert named
    assert named - defined == set()


def test_every_trap_names_its_tests() -> None:
    sections = re.split(r"^### ", (ROOT / "docs" / "traps.md").read_text(), flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections if not _TEST.search(section)] == []


def test_every_decision_is_in_the_list() -> None:
    listed = (ROOT / "docs" / "adr" / "README.md").read_text()
    decisions = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    assert decisions
    assert [each.name for each in decisions if f"]({each.name})" not in listed] == []


def test_the_modules_that_use_private_parts_of_pyspark_are_listed() -> None:
    """They are what a new release of Spark may break."""
    folder = ROOT / "src" / "sparkfusion" / "runner" / "spark"
    using = {path for path in (ROOT / "src").rglob("*.py") if _PRIVATE.search(path.read_text())}
    page = (ROOT / "docs" / "adr" / "0007-frames-ride-in-rdd-shuffles.md").read_text()
    listed = _MODULE.findall("".join(line for line in page.splitlines() if line.startswith("- ")))
    assert sorted(folder / each for each in listed) == sorted(using)
    assert f"used in {len(using)} modules" in page
