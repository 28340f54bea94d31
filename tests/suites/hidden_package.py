"""Packages that seem not to be installed."""

from __future__ import annotations

import sys
from typing import Any

import pytest


def hide_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Until the test ends, importing the package fails as if it were not installed."""

    class Hidden:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
