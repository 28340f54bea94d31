"""A name of a class has one meaning in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sparkfusion

_PACKAGE = Path(sparkfusion.__file__).parent


def test_every_class_has_a_name_of_its_own() -> None:
    modules = defaultdict(list)
    for path in sorted([*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.pyi")]):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(_PACKAGE)))
    assert len(modules) > 200
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}
