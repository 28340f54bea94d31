"""Pages use the words of docs/glossary.md: words that were given up for clearer ones do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.snippets import PAGES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
_RETIRED = {
    "tried again": "retried",
    "whoever": "anyone who, or name who it is",
    "anew": "again",
    "fed table": "feed",
    "embedded": "in process",
    "harness": "verify",
    "what still runs": "name what runs",
}
_ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page != GLOSSARY], ids=lambda p: p.name)
def test_retired_words_do_not_come_back(page: Path) -> None:
    text = page.read_text().lower()
    found = {word: better for word, better in _RETIRED.items() if re.search(rf"\b{word}\b", text)}
    assert found == {}


def test_the_glossary_is_sorted_and_explains_each_word_once() -> None:
    words = _ROW.findall(GLOSSARY.read_text())[1:]
    assert len(words) > 30
    assert words == sorted(set(words), key=str.lower)
