"""Import packages that only some features need: the extras of this package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparkfusion.errors import UserError


def import_extra(module: str, extra: str, user: str, *, distribution: str | None = None) -> Any:
    """Import a module of an extra for `user`. If it is not installed, a `UserError` says how to install it.

    `distribution`: its name for pip, if that is not the name of the package.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # it is installed, but one of its own imports is missing
        message = f"{user} needs {package}, which is not installed"
        raise UserError(
            message, hint=f"pip install {distribution or package}, or pip install 'sparkfusion[{extra}]'"
        ) from None
