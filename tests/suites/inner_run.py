"""A pytest run inside a test: for what our conftest does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import leaks

CONFTEST = Path(__file__).parents[1] / "conftest.py"


class Run:
    """Runs test files under our conftest, in a process of their own."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
        monkeypatch.setattr(leaks, "PATIENCE", leaks.PATIENCE)  # `collect` shares the module: it comes back
        monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parents[1]))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.makeconftest(CONFTEST.read_text() + "\nleaks.PATIENCE = 0.2\n")
        self._pytester = pytester
        self._arguments = arguments

    def __call__(self, source: str, *arguments: str) -> pytest.RunResult:
        self._pytester.makepyfile(source)
        return self._pytester.runpytest_subprocess("-p", "no:cacheprovider", *self._arguments, *arguments)

    def collect(self, source: str, *arguments: str) -> pytest.RunResult:
        """Only look which tests there are: in this process, because nothing of them runs."""
        self._pytester.makepyfile(source)
        return self._pytester.runpytest_inprocess("-p", "no:cacheprovider", "--collect-only", "-q", *arguments)
