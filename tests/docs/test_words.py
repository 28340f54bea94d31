"""Pages, docstrings, messages and names use the words of docs/glossary.md: words that were given up do not come
back."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.snippets import PAGES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = sorted((ROOT / "src").rglob("*.py"))
_RETIRED = {
    "tried again": "retried",
    "whoever": "anyone who, or name who it is",
    "anew": "again",
    "fed table": "feed",
    "embedded": "in process",
    "harness": "verify",
    "(?<!never-)(?<!time )travel(?:s|led|ling)?": "is sent, or is encoded in the plan",
    "what still runs": "name what runs",
    "is made to end": "is stopped",
    "worth of tasks": "tasks",
    "(?:has|have) no counterpart": "DataFusion (or Spark) has no equivalent",
    "so many seconds": "this many seconds",
    "takes a text": "must be a string",
    r"a number from \d": "at least",
    "tells no": "say what is unknown, or missing",
    "(?<!there )(?:is|are) no (?!longer|more|faster)": "is not a",
}
_ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)


def retired_in(text: str) -> dict[str, str]:
    """The retired words of a text, and what to write instead."""
    line = " ".join(text.lower().split())
    return {word: better for word, better in _RETIRED.items() if re.search(rf"\b{word}\b", line)}


def texts_of(source: str) -> list[str]:
    """The docstrings and string constants of Python code. What an f-string inserts is an x."""
    nodes = list(ast.walk(ast.parse(source)))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            found.append("".join(_plain(part) or "x" for part in node.values))
        elif id(node) not in parts:
            found.append(_plain(node))
    return [each for each in found if each]


def names_in(source: str) -> set[str]:
    """The names in Python code, as words: `_fed_table` and `FedTable` are both "fed table"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = (getattr(node, field, None) for field in ("name", "id", "attr", "arg", "module", "asname"))
        found |= {name_in_words(name) for name in names if isinstance(name, str)}
    return found


def name_in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.]+", " ", name).strip().lower()


def _plain(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=lambda p: p.name)
def test_retired_words_do_not_come_back(page: Path) -> None:
    assert retired_in(page.read_text()) == {}


def test_retired_words_do_not_come_back_in_docstrings_and_messages() -> None:
    texts = {path.relative_to(ROOT).as_posix(): " | ".join(texts_of(path.read_text())) for path in SOURCES}
    assert len(texts) > 300
    assert {path: found for path, text in texts.items() if (found := retired_in(text))} == {}


def test_retired_words_do_not_come_back_in_names() -> None:
    names = {path.relative_to(ROOT).as_posix(): names_in(path.read_text()) | {path.stem} for path in SOURCES}
    assert sum(map(len, names.values())) > 10_000
    found = {path: {name for name in each if retired_in(name_in_words(name))} for path, each in names.items()}
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize(
    "source", ["def _fed_table(): ...", "class FedTable: ...", "import a.harness", "x = FedTable()"]
)
def test_retired_words_are_found_in_names(source: str) -> None:
    assert any(retired_in(name) for name in names_in(source))


def test_texts_are_docstrings_and_constants_and_not_names() -> None:
    source = '"""It is tried\nagain."""\nharness = f"{a} is no {b}"  # anew\n'
    assert [list(retired_in(each)) for each in texts_of(source)] == [
        ["tried again"],
        ["(?<!there )(?:is|are) no (?!longer|more|faster)"],
    ]
    assert retired_in("there is no file, and it is no longer read") == {}


def test_the_glossary_is_sorted_and_explains_each_word_once() -> None:
    words = _ROW.findall(GLOSSARY.read_text())[1:]
    assert len(words) > 30
    assert words == sorted(set(words), key=str.lower)
