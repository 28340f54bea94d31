"""An extension of griffe, for the API reference: methods that are made when a class is loaded, and examples.

Session and DataFrame make many methods from those of datafusion-python, as in `limit = _verb("limit")`, and some have a
second name, as in `to_arrow = collect`. griffe reads sources and sees only an attribute there. This extension looks at
the loaded class, and shows such a method with its arguments and its text. In all docstrings, it shows `>>>` examples as
code.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:py:)?\w+:`~?([^`]+)`")
_EXAMPLES = re.compile(r"^Examples?:.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_OWN = re.compile(r"^Arguments of sparkfusion's own:\n((?: .*\n?)+)", re.MULTILINE)
_ARGUMENTS = re.compile(r"^Args:\n(?: .*(?:\n|\Z))+", re.MULTILINE)
_DOCTEST = re.compile(r"^( *)>>> .*(?:\n *\S.*)*", re.MULTILINE)
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}


class MadeMethods(griffe.Extension):
    """Replaces the attributes of a class that are functions at run time, and marks examples as code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = mark_examples(plain_roles(obj.docstring.value))

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        made = [
            name
            for name, member in cls.members.items()
            if isinstance(getattr(member, "value", None), griffe.ExprCall | griffe.ExprName)
            and not name.startswith("_")
        ]
        loaded = griffe.dynamic_import(cls.path) if made else None
        for name in made:
            function = vars(loaded).get(name)
            if inspect.isfunction(function):
                cls.set_member(name, _shown(cls, name, function))


def _shown(cls: griffe.Class, name: str, function: Any) -> griffe.Function:
    signature = inspect.signature(function)
    shown = griffe.Function(
        name,
        lineno=cls.members[name].lineno,
        parameters=griffe.Parameters(*map(_parameter, signature.parameters.values())),
        returns=_text(signature.return_annotation, inspect.Signature.empty),
        parent=cls,
    )
    text = mark_examples(clean(function.__doc__ or ""))
    shown.docstring = griffe.Docstring(text, parent=shown, parser="google")
    return shown


def _parameter(given: inspect.Parameter) -> griffe.Parameter:
    default = None if given.default is inspect.Parameter.empty else repr(given.default)
    annotation = _text(given.annotation, inspect.Parameter.empty)
    return griffe.Parameter(given.name, annotation=annotation, kind=_KINDS[given.kind], default=default)


def _text(annotation: Any, empty: object) -> str | None:
    return None if annotation is empty else str(annotation)


def clean(text: str) -> str:
    """The text of a docstring of datafusion-python in Markdown. Its examples are left out: they use its own context.

    >>> clean("Join with another :py:class:`~datafusion.DataFrame` ``on`` keys.")
    'Join with another `DataFrame` `on` keys.'
    """
    text = _EXAMPLES.sub("", inspect.cleandoc(text))
    if own := _OWN.search(text):
        text = _OWN.sub("", text)
        text = _ARGUMENTS.sub(lambda known: known[0] + own[1], text)
    return plain_roles(text).replace("``", "`").strip()


def plain_roles(text: str) -> str:
    """A text without the roles of reStructuredText, which datafusion-python uses."""
    return _ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2]}`", text)


def mark_examples(text: str) -> str:
    """A docstring with its examples as blocks of code. Otherwise they would be read as quotations with links.

    >>> mark_examples("Twice a number." + chr(10) + ">>> twice(2)")
    'Twice a number.\\n```pycon\\n>>> twice(2)\\n```'
    """
    return _DOCTEST.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)
