"""`docs/cli.md`, made from the help of each command: `python -m tests.docs.cli_page` writes it."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from sparkfusion.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

_INTRODUCTION = """\
# Command line

`pip install '.[cli]'` installs the command `sparkfusion`. This page is what `--help` prints. [shell.md](shell.md)
describes the interactive shell, [errors.md](errors.md#exit-codes-of-the-command-line) the exit codes, and
[settings.md](settings.md) what `--set` takes.
"""


def render() -> str:
    """The page: the help of the program and of each of its commands."""
    shown = [[], *([name] for name in sorted(app.commands))]
    return "\n".join([_INTRODUCTION, *map(_section, shown)])


def _section(command: list[str]) -> str:
    asked = CliRunner().invoke(app, [*command, "--help"], prog_name="sparkfusion", terminal_width=100)
    text = re.sub(r" +$", "", asked.output, flags=re.MULTILINE).strip()
    return f"## {' '.join(['sparkfusion', *command])}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(render())
