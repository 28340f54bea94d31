"""A pytest run inside a test: for what our conftest does."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


class Run:
    """Runs a test file under our conftest, in a process of its own."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
        monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parents[1]))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.makeconftest(CONFTEST.read_text() + "\nleaks.PATIENCE = 0.2\n")
        self._pytester = pytester
        self._arguments = arguments

    def __call__(self, source: str, *arguments: str) -> pytest.RunResult:
        self._pytester.makepyfile(source)
        return self._pytester.runpytest_subprocess("-p", "no:cacheprovider", *self._arguments, *arguments)
