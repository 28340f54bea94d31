"""Packages that only some feeds need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparkfusion.errors import UserError


def needed(module: str, extra: str) -> Any:
    """Import a module of an extra; a `UserError` says how to get it."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # installed, but broken
        raise UserError(f"this feed needs the package {package}: pip install 'sparkfusion[{extra}]'") from None
