"""A name has one meaning in the package: of a type, a constant, a file. Names that were given up do not come back."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

import sparkfusion

_PACKAGE = Path(sparkfusion.__file__).parent
_PARALLEL_FILES = {"__init__.py", "base.py", "explain.py"}
"""The contract of a folder is its `base`. A command of the command line is named as what it shows."""
_TYPE = re.compile(r"_?[A-Z]\w*[a-z]\w*")
_TYPES_OF_THE_WIRE_FORMAT = {"Condition", "JoinType"}
"""In the generated module, `pb.Condition` is what is encoded, and `plan.conditions.Condition` what it means."""
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")  # of one letter are type variables
_RETIRED_IN_CLASSES = {
    "Driver": "coordinator: the driver is a process of Spark",
    "Host": "what it does: a host is the name of a machine",
    "Embedded": "local",
    "Placed": "what it is: a directory, a URL, a position",
    "Placement": "what it is: a directory, a URL, a position",
    "Workplace": "what it is: a directory",
}
_LAST_WORDS = {
    "Frames": re.compile(r"\w*DataFrames"),
    "Order": re.compile(r"TaskOrder|ChildOrder|\w*SortOrder"),
    "Reader": re.compile(r"LineReader|PageReader|Reader"),
}
"""What classes and aliases may end in a word that the glossary gives one meaning: a frame is no DataFrame, an order
starts a task, and a reader is the function of a feed."""
_PARTICIPLE = re.compile(
    r"[a-z]+(?:ed|ing)|begun|bound|built|caught|chosen|done|drawn|driven|found|given|gone|grown|heard|held|hidden|kept|"
    r"known|laid|led|left|lent|lost|made|meant|met|seen|sent|shown|sold|spent|stood|struck|taken|taught|thrown|told|"
    r"torn|woken|won|worn|written"
)
_VERB_OR_NOUN = re.compile(
    r"bring|embed|ending|feed|finding|grouping|mapping|need|nothing|rawstring|ruling|setting|shed|staging|string|substring|wiring"
)
_PARTICIPLES_OF_OTHERS = {
    "observe/progress.py: elapsed": "public",
    "session/query.py: rejected": "public",
    "worker/loops.py: cancelled": "of asyncio.Future",
}
_RETIRED_FUNCTIONS = {"settle"}
_HIDES_ITS_VERB = re.compile(
    r"([a-z]+)_(?:back|by|in|of|to|with)|(?:as|if|unless)_([a-z]+)|(?:[a-z]+_)+(explained|made|meant|named|told)"
)
"""Shapes of names in which a participle stands for what a function does, as in `held_back`, `as_moved` and `leg_named`.
Other participles at the end of a name belong to what a function works on (`find_damaged`), or to a question
(`is_known`)."""
_QUESTIONS = ("is_", "has_", "may_")


@cache
def modules_of_the_package() -> dict[str, ast.Module]:
    paths = sorted(path for path in _PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    return {str(path.relative_to(_PACKAGE)): ast.parse(path.read_text()) for path in paths}


@cache
def definitions() -> list[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every class and function, also inside others."""
    return [
        (module, node)
        for module, tree in modules_of_the_package().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def functions() -> Iterator[tuple[str, str]]:
    """Where each function is, and its name; properties are attributes."""
    for module, node in definitions():
        decorators = {ast.unparse(each) for each in node.decorator_list}
        if not isinstance(node, ast.ClassDef) and not decorators & {"property", "cached_property"}:
            yield f"{module}: {node.name}", node.name.strip("_")


def is_participle(name: str) -> bool:
    """Whether a name is a participle alone."""
    return _PARTICIPLE.fullmatch(name) is not None and _VERB_OR_NOUN.fullmatch(name) is None


def hides_its_verb(name: str) -> bool:
    """Whether a name of several words has a participle in place of its verb."""
    found = _HIDES_ITS_VERB.fullmatch(name)
    return found is not None and not name.startswith(_QUESTIONS) and is_participle(found[found.lastindex or 0])


def types_and_constants() -> Iterator[tuple[str, str]]:
    """Module and name of every class, and of every alias of a type and constant at the top of a module."""
    for module, node in definitions():
        if isinstance(node, ast.ClassDef):
            yield module, node.name
    for module, tree in modules_of_the_package().items():
        for each in tree.body if module.endswith(".py") else ():
            targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
            targets += [getattr(each, "name", None)]  # of `type X = …`
            for target in targets:
                if isinstance(target, ast.Name):
                    yield module, target.id


def several_modules(named: re.Pattern[str], allowed: Collection[str]) -> dict[str, set[str]]:
    modules = defaultdict(set)
    for module, name in types_and_constants():
        if named.fullmatch(name) and name not in allowed:
            modules[name].add(module)
    assert len(modules) > 150
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_every_type_has_a_name_of_its_own() -> None:
    assert several_modules(_TYPE, _TYPES_OF_THE_WIRE_FORMAT) == {}


def test_every_constant_that_modules_share_has_a_name_of_its_own() -> None:
    assert several_modules(_CONSTANT, allowed=()) == {}


def test_every_file_has_a_name_of_its_own() -> None:
    folders = defaultdict(list)
    for path in sorted(_PACKAGE.rglob("*.py")):
        folders[path.name].append(str(path.parent.relative_to(_PACKAGE)))
    assert {name for name, where in folders.items() if len(where) > 1} == _PARALLEL_FILES


def test_retired_names_do_not_come_back() -> None:
    classes = [node.name for _, node in definitions() if isinstance(node, ast.ClassDef)]
    words = {(name, word) for name in classes for word in re.findall(r"[A-Z][a-z]+", name)}
    assert {name: _RETIRED_IN_CLASSES[word] for name, word in words if word in _RETIRED_IN_CLASSES} == {}
    assert {where for where, name in functions() if name in _RETIRED_FUNCTIONS} == set()


@pytest.mark.parametrize("word", _LAST_WORDS)
def test_words_of_the_glossary_keep_their_meaning(word: str) -> None:
    names = {name for _, name in types_and_constants() if name.endswith(word)}
    assert names
    assert {name for name in names if _LAST_WORDS[word].fullmatch(name) is None} == set()


def test_no_function_is_a_participle() -> None:
    """Participles hide what a function does. Of attributes they say what is so. See the glossary on names."""
    found = {where for where, name in functions() if is_participle(name)}
    assert found == set(_PARTICIPLES_OF_OTHERS)


def test_no_function_has_a_participle_in_place_of_its_verb() -> None:
    assert {where for where, name in functions() if hides_its_verb(name)} == set()


@pytest.mark.parametrize("name", ["held_back", "made_by", "lost_of", "as_moved", "unless_failed", "leg_named"])
def test_participles_in_place_of_a_verb_are_recognized(name: str) -> None:
    assert hides_its_verb(name)


@pytest.mark.parametrize("name", ["is_told", "is_named", "finding_of", "find_damaged", "cast_to", "row_limit"])
def test_other_names_have_a_verb_or_need_none(name: str) -> None:
    assert not hides_its_verb(name)


@pytest.mark.parametrize(
    ("name", "participle"), [("started", True), ("reading", True), ("told", True), ("feed", False), ("read_all", False)]
)
def test_participles_are_recognized(name: str, participle: bool) -> None:
    assert is_participle(name) is participle
