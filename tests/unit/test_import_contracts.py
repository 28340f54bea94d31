"""The import contracts in pyproject.toml are about every part of the package, and the architecture page draws them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sparkfusion

_PACKAGE = Path(sparkfusion.__file__).parent
_ROOT = Path(__file__).parents[2]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())
CONTRACTS: dict[str, Any] = {each["id"]: each for each in _PROJECT["tool"]["importlinter"]["contracts"]}
_OF_ONE_PART = {"pure-planning": ["sparkfusion.plan"]}
"""Contracts that are meant for one part only."""


def layers() -> list[list[str]]:
    """The parts of each layer, from the top."""
    return [[part.strip() for part in layer.split("|")] for layer in CONTRACTS["layers"]["layers"]]


def parts() -> set[str]:
    """The modules and packages right below the root."""
    found = {path.parent.name for path in _PACKAGE.glob("*/__init__.py")}
    return found | {path.stem for path in _PACKAGE.glob("*.py") if path.stem != "__init__"}


def test_every_part_has_a_layer() -> None:
    assert sorted(part for layer in layers() for part in layer) == sorted(parts())
    assert CONTRACTS["layers"]["exhaustive"]


def test_the_picture_of_the_architecture_has_the_same_layers() -> None:
    page = (_ROOT / "docs" / "architecture.md").read_text()
    picture = page.partition("## What imports what")[2].split("```")[1].strip("\n")
    drawn = [re.split(r"\s{2,}", line.strip())[0].split(" │ ") for line in picture.splitlines()]
    assert drawn == layers()


@pytest.mark.parametrize("id", [id for id, each in CONTRACTS.items() if each["type"] == "forbidden"])
def test_what_only_some_parts_may_import_is_forbidden_to_all_others(id: str) -> None:
    contract = CONTRACTS[id]
    expected = ["sparkfusion"]  # with everything in it
    if any(name.startswith("sparkfusion.") for name in contract["forbidden_modules"]):
        expected.append("sparkfusion.*")  # the root contains what is forbidden, so the linter passes over it
    assert contract["source_modules"] == _OF_ONE_PART.get(id, expected)


def test_only_these_packages_are_exceptions() -> None:
    ignored = {
        line.partition(" -> ")[0]
        for contract in CONTRACTS.values()
        for line in contract.get("ignore_imports", ())
        if "*" in line
    }
    assert ignored == {
        "sparkfusion.cli",
        "sparkfusion.cli.**",
        "sparkfusion.dialect.**",
        "sparkfusion.notebook.**",
        "sparkfusion.runner.spark.**",
    }
