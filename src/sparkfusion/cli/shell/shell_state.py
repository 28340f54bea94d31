"""What a person has chosen in the shell."""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.cli.output import OutputFormat


@dataclass
class ShellState:
    """Lives as long as the shell, over several sessions. `once` is the file for the next result."""

    form: OutputFormat = "table"
    max_rows: int = 100
    timing: bool = False
    paging: bool = True
    once: str | None = None
    last_query: str | None = None
