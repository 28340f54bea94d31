"""Packages that only some methods need."""

from __future__ import annotations

import importlib

from sparkfusion.errors import UserError


def need(package: str, method: str) -> None:
    """Make sure that a package is there before a query runs for it. Each is an extra of the same name."""
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        message = f"{method} needs {package}, which is not installed"
        raise UserError(message, hint=f"pip install {package}, or pip install 'sparkfusion[{package}]'") from None
