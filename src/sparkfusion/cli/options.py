"""Options that several commands share, and the session they describe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sparkfusion.cli.script import Statement, split
from sparkfusion.cli.tables import Table, check_unique, hint_of, parse_table, register
from sparkfusion.config import DIALECTS, PREFIX, SETTINGS
from sparkfusion.errors import UserError
from sparkfusion.feed.ready.formats import FORMATS
from sparkfusion.transport.membership import TOKEN_VARIABLE
from sparkfusion.transport.schemes import is_known, scheme_of

if TYPE_CHECKING:
    from sparkfusion import Session

Command = TypeVar("Command", bound=Callable[..., Any])

TARGET_PARTITIONS = "datafusion.execution.target_partitions"


def _tables(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[Table, ...]:
    try:
        return tuple(map(parse_table, values))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _settings(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Full names are checked by the session."""
    return tuple(map(_setting, values))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
    full = PREFIX + key.strip()
    if any(setting.name == full for setting in SETTINGS):
        raise click.BadParameter(f"there is no setting {key.strip()!r}; its full name is {full}")
    return key.strip(), value.strip()


def _target(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if value in ("local", "spark") or is_known(scheme_of(value)):
        return value
    place = value.partition("?")[0]  # what follows may be a token
    raise click.BadParameter(f"{place!r} is neither local, spark, nor workers such as flight://host:port,host:port")


def source_options(command: Command) -> Command:
    """-c and --file: where statements come from."""
    command = click.option(
        "-f", "--file", metavar="FILE", help="A file of statements, separated by ';'. '-' reads standard input."
    )(command)
    return click.option("-c", "--command", "text", metavar="SQL", help="Statements to run, separated by ';'.")(command)


def session_options(command: Command) -> Command:
    """--table, --set and --connect."""
    command = click.option(
        "--connect",
        "target",
        metavar="TARGET",
        default="local",
        show_default=True,
        callback=_target,
        help="Where tasks run. local: in this process. spark: on a local Spark session. flight://host:port,host:port: "
        f"on these workers; their token is in ${TOKEN_VARIABLE}, or follows the addresses as ?token=…",
    )(command)
    command = click.option(
        "-s",
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_settings,
        help="A sparkfusion.* or datafusion.* setting. Can be repeated.",
    )(command)
    return click.option(
        "-t",
        "--table",
        "tables",
        metavar="NAME=PATH",
        multiple=True,
        callback=_tables,
        help="A table from a file or a directory. Can be repeated. The format is inferred from the file names; to set "
        f"it, write NAME=FORMAT:PATH with one of {', '.join(FORMATS)}.",
    )(command)


def dialect_option(command: Command) -> Command:
    """--dialect."""
    return click.option(
        "--dialect",
        type=click.Choice(DIALECTS),
        help="SQL dialect of the statements; spark needs the extra 'dialect'.  [default: datafusion]",
    )(command)


def read_statements(text: str | None, file: str | None) -> list[Statement]:
    """The statements of -c or --file; exactly one of them has to be there, with a statement in it."""
    if (text is None) == (file is None):
        raise click.UsageError("give either -c SQL or --file FILE")
    if file is not None:
        text = _read(file)
    statements = split(text or "")
    if not statements:
        raise click.UsageError("there is no statement to run")
    return statements


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {file!r}: {error}", param_hint="--file") from error


@contextmanager
def open_session(
    target: str,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    partitions: int | None = None,
    dialect: str | None = None,
) -> Iterator[Session]:
    """A session on that target, with these tables and settings; closed, with its query cancelled, however the block
    ends. Errors of the block are told how a missing table is given.
    """
    import sparkfusion

    check_unique(tables)
    config: dict[str, object] = dict(settings)
    if partitions is not None:
        config[TARGET_PARTITIONS] = partitions
    if dialect is not None:
        config["sparkfusion.dialect"] = dialect
    with sparkfusion.connect(target, config=config) as session:
        for table in tables:
            register(session, table)
        try:
            yield session
        except UserError as error:
            error.hint = hint_of(error)
            raise
