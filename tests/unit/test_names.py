"""A name has one meaning in the package: of a class, and of a file. Names that were given up do not come back."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import sparkfusion

_PACKAGE = Path(sparkfusion.__file__).parent
_PARALLEL_FILES = {"__init__.py", "base.py", "explain.py"}
"""The contract of a folder is its `base`. A command of the command line is named as what it shows."""
_RETIRED_IN_CLASSES = {
    "Driver": "coordinator: the driver is a process of Spark",
    "Host": "what it does: a host is the name of a machine",
    "Embedded": "local",
}
_RETIRED_FUNCTIONS = {"begun", "needed", "told", "lent", "placed", "settle"}
"""Participles hide what a function does. See the glossary on names of functions."""


def definitions(*suffixes: str) -> Iterator[tuple[str, ast.stmt]]:
    for suffix in suffixes:
        for path in sorted(_PACKAGE.rglob(f"*{suffix}")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield str(path.relative_to(_PACKAGE)), node


def test_every_class_has_a_name_of_its_own() -> None:
    modules = defaultdict(set)
    for module, node in definitions(".py", ".pyi"):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            modules[node.name].add(module)
    assert len(modules) > 200
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_every_file_has_a_name_of_its_own() -> None:
    folders = defaultdict(list)
    for path in sorted(_PACKAGE.rglob("*.py")):
        folders[path.name].append(str(path.parent.relative_to(_PACKAGE)))
    assert {name for name, where in folders.items() if len(where) > 1} == _PARALLEL_FILES


def test_retired_names_do_not_come_back() -> None:
    classes = [node.name for _, node in definitions(".py") if isinstance(node, ast.ClassDef)]
    words = {(name, word) for name in classes for word in re.findall(r"[A-Z][a-z]+", name)}
    assert {name: _RETIRED_IN_CLASSES[word] for name, word in words if word in _RETIRED_IN_CLASSES} == {}
    functions = {
        f"{module}: {node.name}"
        for module, node in definitions(".py")
        if isinstance(node, ast.FunctionDef)
        and node.name.strip("_") in _RETIRED_FUNCTIONS
        and not any(ast.unparse(each) == "property" for each in node.decorator_list)
    }
    assert functions == set()
