"""Which plan rewrites are installed."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from sparkfusion.worker.server import rewrites
from sparkfusion.worker.server.rewrites import REWRITES, installed_rewrites
from tests.installed_package import install


def test_a_package_is_found_when_it_is_installed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = [each.name for each in installed_rewrites()]
    install(
        tmp_path,
        "later_rewrite",
        "def change(plan, context):\n    return plan\n",
        {REWRITES: {"later": "later_rewrite:change"}},
    )
    assert [each.name for each in installed_rewrites()] == sorted([*before, "later"])
    monkeypatch.delitem(sys.modules, "later_rewrite", raising=False)


def test_the_metadata_of_packages_is_read_once_for_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Mock(wraps=importlib.metadata.entry_points)
    monkeypatch.setattr(rewrites, "entry_points", look)
    rewrites._entry_points.cache_clear()
    assert installed_rewrites() == installed_rewrites()
    assert look.call_count == 1
