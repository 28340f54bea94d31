"""Modules of the package do not import each other in a circle, not even for type checkers or inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sparkfusion

_PACKAGE = Path(sparkfusion.__file__).parent
_ALLOWED = {
    ("sparkfusion.bench.bench_result", "sparkfusion.bench.bench_report"): "str(result) is the report of the result",
}
"""Imports that close a circle, and why they stay."""


def package_sources() -> dict[str, str]:
    found = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def imported_modules(code: str, known: Mapping[str, str]) -> Iterator[str]:
    """The known modules that a statement of the code imports, wherever the statement is.

    A module's parent packages do not count, which Python imports before it.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports name the whole module"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if name in known else node.module for name in inner} & set(known)


def find_cycle(sources: Mapping[str, str], allowed: Mapping[tuple[str, str], str]) -> list[str]:
    """The modules of one circle of imports; empty if there is none."""
    graph = {
        module: {name for name in imported_modules(code, sources) if (module, name) not in allowed}
        for module, code in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert find_cycle(package_sources(), _ALLOWED) == []


@pytest.mark.parametrize("allowed", _ALLOWED, ids=":".join)
def test_every_allowed_import_still_closes_a_circle(allowed: tuple[str, str]) -> None:
    others = {edge: why for edge, why in _ALLOWED.items() if edge != allowed}
    assert set(allowed) <= set(find_cycle(package_sources(), others))


@pytest.mark.parametrize(
    "code",
    [
        "import a.one",
        "from a import one",
        "from a.one import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.one import name",
        "def function():\n    from a.one import name",
    ],
)
def test_every_way_to_import_counts(code: str) -> None:
    sources = {"a": "", "a.one": "from a import two", "a.two": code}
    assert set(find_cycle(sources, {})) == {"a.one", "a.two"}
    assert find_cycle(sources | {"a.two": "import sys\nfrom a import name"}, {}) == []
