r"""Commands of the shell itself: `\d`, `\format` and so on."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, get_args

import click
import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.cli.options import check_target
from sparkfusion.cli.output import BINARY_FORMATS, OUTPUT_FORMATS, OutputFormat, check_directory, describe_format
from sparkfusion.cli.shell.pager import show
from sparkfusion.cli.shell.shell_state import LeaveShell, ShellState
from sparkfusion.config import suggest
from sparkfusion.errors import UserError

_NOT_DEFAULT = "select name, value, source from information_schema.df_settings where source <> 'default'"


class CommandedShell(Protocol):
    """The part of the shell that commands use. `Shell` describes the methods."""

    state: ShellState

    @property
    def target(self) -> str: ...

    def answer(self, sql: str, choose: Callable[[pa.Table], pa.Table] = ..., /) -> None: ...

    def explain(self, *, analyze: bool) -> None: ...

    def connect(self, target: str) -> None: ...

    def run_file(self, path: str) -> None: ...


@dataclass(frozen=True)
class ShellCommand:
    """A command. `takes` says what completes its argument: table, format, path, switch, target, or nothing ("")."""

    names: tuple[str, ...]
    argument: str
    help: str
    run: Callable[[CommandedShell, str], None]
    takes: str = ""


def run_command(shell: CommandedShell, text: str) -> None:
    """Run a line that begins with a backslash, or is `help` or `quit`."""
    name, _, argument = text.rstrip("; \t\n").partition(" ")
    name = {"help": r"\?", "quit": r"\q", "exit": r"\q"}.get(name.lower(), name)
    command = next((each for each in COMMANDS if name in each.names), None)
    if command is None:
        known = [known for each in COMMANDS for known in each.names]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else r"\? lists the commands"
        raise UserError(f"there is no command {name}", hint=hint)
    command.run(shell, argument.strip())


def _describe(shell: CommandedShell, table: str) -> None:
    if table:
        shell.answer(f"describe {table}")
        return
    shell.answer("show tables", lambda rows: rows.filter(pc.not_equal(rows["table_schema"], "information_schema")))


def _settings(shell: CommandedShell, pattern: str) -> None:
    if not pattern:
        shell.answer(f"{_NOT_DEFAULT} order by name")
        return
    quoted = pattern.replace("'", "''")
    shell.answer(
        "select name, value, source, description from information_schema.df_settings "
        f"where name like '%{quoted}%' order by name"
    )


def _format(shell: CommandedShell, name: str) -> None:
    if name:
        if name not in get_args(OutputFormat):
            raise UserError(
                f"there is no format {name!r}", hint=suggest(name, OUTPUT_FORMATS) or ", ".join(OUTPUT_FORMATS)
            )
        if name in BINARY_FORMATS:
            raise UserError(
                f"a terminal cannot show {name}", hint=rf"\once result.{name} writes the next result to a file"
            )
        shell.state.form = next(each for each in OUTPUT_FORMATS if each == name)
    click.echo(f"format: {shell.state.form}")


def _rows(shell: CommandedShell, number: str) -> None:
    if number:
        if not number.isdecimal():
            raise UserError(rf"\rows takes a number, not {number!r}")
        shell.state.max_rows = int(number)
    click.echo(f"rows that are shown: {shell.state.max_rows}")


def _switch(name: str, words: str) -> Callable[[CommandedShell, str], None]:
    def run(shell: CommandedShell, value: str) -> None:
        if value not in ("", "on", "off"):
            raise UserError(f"{words} is on or off, not {value!r}")
        chosen = not getattr(shell.state, name) if not value else value == "on"
        setattr(shell.state, name, chosen)
        click.echo(f"{words}: {'on' if chosen else 'off'}")

    return run


def _once(shell: CommandedShell, path: str) -> None:
    if not path:
        raise UserError(r"\once needs a file", hint=r"such as \once result.parquet")
    check_directory(path)
    if (told := describe_format(path)) is not None:
        click.echo(told)
    shell.state.once = path
    click.echo(f"the next result goes to {path}")


def _explain(shell: CommandedShell, word: str) -> None:
    if word not in ("", "analyze"):
        raise UserError(rf"\explain takes nothing or analyze, not {word!r}")
    shell.explain(analyze=word == "analyze")


def _connect(shell: CommandedShell, target: str) -> None:
    if target:
        shell.connect(check_target(target))
        click.echo("tables of the command line and of sparkfusion.toml are registered again; others are gone")
    click.echo(f"tasks run on: {shell.target}")


def _include(shell: CommandedShell, path: str) -> None:
    if not path:
        raise UserError(r"\i needs a file", hint=r"such as \i report.sql")
    shell.run_file(path)


def _help(shell: CommandedShell, _argument: str) -> None:
    usages = [(" ".join((", ".join(each.names), each.argument)).strip(), each.help) for each in COMMANDS]
    width = max(len(usage) for usage, _ in usages)
    show("".join(f"  {usage.ljust(width)}  {text}\n" for usage, text in usages), paging=shell.state.paging)


def _quit(_shell: CommandedShell, _argument: str) -> None:
    raise LeaveShell


COMMANDS = (
    ShellCommand((r"\d", r"\dt"), "[TABLE]", "list tables, or the columns of one", _describe, "table"),
    ShellCommand((r"\explain", r"\e"), "[analyze]", "how the last query is distributed", _explain),
    ShellCommand((r"\format", r"\f"), "[FORMAT]", f"output format: {', '.join(OUTPUT_FORMATS[:7])}", _format, "format"),
    ShellCommand((r"\rows",), "[NUMBER]", "how many rows of a result are shown", _rows),
    ShellCommand(
        (r"\once", r"\o"), "FILE", "write the next result to a file: .csv, .json, .parquet, .arrow, .md", _once, "path"
    ),
    ShellCommand((r"\timing",), "[on|off]", "show how long statements take", _switch("timing", "timing"), "switch"),
    ShellCommand((r"\pager",), "[on|off]", "long results a screen at a time", _switch("paging", "pager"), "switch"),
    ShellCommand((r"\settings",), "[TEXT]", "settings that are not default, or whose name has TEXT in it", _settings),
    ShellCommand(
        (r"\connect", r"\c"),
        "[TARGET]",
        "run elsewhere: local, spark, spark://host:7077, flight://host:port",
        _connect,
        "target",
    ),
    ShellCommand((r"\i",), "FILE", "run the statements of a file", _include, "path"),
    ShellCommand((r"\?", r"\help"), "", "this list", _help),
    ShellCommand((r"\q",), "", "leave; so do Ctrl-D, quit and exit", _quit),
)
