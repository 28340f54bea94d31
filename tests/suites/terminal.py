"""Lines for the person who runs the tests."""

from __future__ import annotations

import sys

import pytest


def say(config: pytest.Config, text: str) -> None:
    """Write to the terminal, past the capture of output; from a test or a fixture."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        return
    with capture.global_and_fixture_disabled():
        if terminal is None:  # a process of `pytest -n`: another one has the terminal
            print(f"\n{text}", file=sys.stderr)
        else:
            terminal.ensure_newline()
            terminal.write_line(text)
