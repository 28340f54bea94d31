"""Signatures and docstrings of methods that take DataFusion's arguments and some of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_SKIPPING = ("csv", "json")
_HIVE = inspect.Parameter("hive", inspect.Parameter.KEYWORD_ONLY, default=True, annotation="bool")
_ON_ERROR = inspect.Parameter("on_error", inspect.Parameter.KEYWORD_ONLY, default="fail", annotation="str")
_HIVE_TEXT = "hive: whether directories named `column=value` give columns."
_ON_ERROR_TEXT = 'on_error: "fail", or "skip" to leave out lines that cannot be read; the query tells how many.'


def describe_method(method: Callable[..., Any], original: Callable[..., Any], format: str | None) -> None:
    """Give a method of a session its signature: the original's arguments, and ours for files of this format."""
    if format is None:
        return
    added = {_HIVE: _HIVE_TEXT} | ({_ON_ERROR: _ON_ERROR_TEXT} if format in _SKIPPING else {})
    signature = inspect.signature(original)
    known = list(signature.parameters.values())
    method.__dict__["__signature__"] = signature.replace(parameters=[*known, *added])
    own = "\n".join(f"    {text}" for text in added.values())
    method.__doc__ = f"{inspect.cleandoc(original.__doc__ or '')}\n\nArguments of sparkfusion's own:\n{own}\n"
