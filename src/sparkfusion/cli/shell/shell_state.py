"""The choices of the user in the shell, and the exception for leaving it."""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.cli.output import OutputFormat


@dataclass
class ShellState:
    """The choices of the user. They last as long as the shell, over several sessions. `once` is the file for the next
    result."""

    form: OutputFormat = "table"
    max_rows: int = 100
    timing: bool = False
    paging: bool = True
    once: str | None = None
    last_query: str | None = None


class LeaveShell(Exception):  # noqa: N818 - nothing went wrong
    """The user wants to leave the shell."""
