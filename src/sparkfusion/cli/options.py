"""Options that several commands share, and the session they describe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sparkfusion.cli.output import check_directory
from sparkfusion.cli.spark_masters import is_spark_master, open_target
from sparkfusion.cli.table_sources import add_tables, tables_at, tables_of_file
from sparkfusion.cli.tables import Table, check_unique, hint_of, register
from sparkfusion.config import DIALECTS, PREFIX, SETTINGS
from sparkfusion.config.config_file import current_config_file
from sparkfusion.config.given_settings import CONNECT, TOKEN_VARIABLE, GivenSetting
from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import UserError
from sparkfusion.formats import FORMATS
from sparkfusion.session.script import ScriptStatement, split
from sparkfusion.transport.schemes import is_known, scheme_of

if TYPE_CHECKING:
    from sparkfusion import Session

F = TypeVar("F", bound=Callable[..., Any])


def _tables(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[Table, ...]:
    found: list[Table] = []
    for value in values:
        try:
            tables, others = tables_at(value)
            found += tables
            check_unique(tuple(found))
        except (ValueError, UserError) as error:
            raise click.BadParameter(str(error)) from error
        if others:
            click.echo(f"sparkfusion: not tables, judging by their names: {', '.join(others)} in {value}", err=True)
    return tuple(found)


def _settings(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(map(_setting, values))


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
    full = PREFIX + key.strip()
    if any(setting.name == full for setting in SETTINGS):
        raise click.BadParameter(f"there is no setting {key.strip()!r}; its full name is {full}")
    from sparkfusion.session.session_settings import SessionSettings

    try:
        SessionSettings.check(GivenSetting(key.strip(), value.strip(), CONNECT))
    except UserError as error:
        raise click.BadParameter(str(error)) from error
    return key.strip(), value.strip()


def _target(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    try:
        return value if value is None else check_target(value)
    except UserError as error:
        raise click.BadParameter(str(error)) from error


def check_target(target: str) -> str:
    """The target, if its form is valid; raises otherwise."""
    if target in ("local", "spark") or is_spark_master(target) or is_known(scheme_of(target)):
        return target
    place = target.partition("?")[0]  # the rest may be a token
    raise UserError(
        f"{place!r} is neither local, spark, a master of Spark such as spark://host:7077, nor workers such as "
        "flight://host:port,host:port"
    )


def check_output(_ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The callback of options that name a file to write. Refuses the file if its directory does not exist."""
    try:
        if value is not None:
            check_directory(value)
    except UserError as error:
        raise click.BadParameter(str(error)) from error
    return value


def source_options(command: F) -> F:
    """-c and --file: where statements come from."""
    command = click.option(
        "-f", "--file", metavar="FILE", help="A file of statements, separated by ';'. '-' reads standard input."
    )(command)
    return click.option("-c", "--command", "text", metavar="SQL", help="Statements to run, separated by ';'.")(command)


def target_options(command: F) -> F:
    """--set and --connect."""
    command = click.option(
        "--connect",
        "target",
        metavar="TARGET",
        callback=_target,
        help="Where tasks run. local: in this process. spark: on a local Spark session. spark://host:7077, yarn, "
        "k8s://… or sc://host:15002: on that Spark, with your own Spark configuration. flight://host:port,host:port: "
        f"on these workers; their token is in ${TOKEN_VARIABLE}, or follows the addresses as ?token=….  "
        "[default: what sparkfusion.toml says, else local]",
    )(command)
    return click.option(
        "-s",
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_settings,
        help="A sparkfusion.* or datafusion.* setting. Can be repeated.",
    )(command)


def session_options(command: F) -> F:
    """--table, --set and --connect."""
    return click.option(
        "-t",
        "--table",
        "tables",
        metavar="[NAME=]PATH",
        multiple=True,
        callback=_tables,
        help="A table from a file or a directory. Can be repeated. The format is inferred from the file names; to set "
        f"it, write NAME=FORMAT:PATH with one of {', '.join(FORMATS)}. Without NAME, the table of a file is named "
        "like the file, and each file and folder of a directory is a table.",
    )(target_options(command))


def dialect_option(command: F) -> F:
    """--dialect."""
    return click.option(
        "--dialect",
        type=click.Choice(DIALECTS),
        help="SQL dialect of the statements; spark needs the extra 'dialect'.  [default: the setting "
        "sparkfusion.dialect]",
    )(command)


def read_statements(text: str | None, file: str | None) -> list[ScriptStatement]:
    """The statements of -c or --file. Raises unless exactly one of them is given and has a statement."""
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


@dataclass(frozen=True)
class SessionOptions:
    """The options of the command line about its session. `reads_file`: whether the session also has the tables of
    `sparkfusion.toml`."""

    target: str | None
    tables: tuple[Table, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    partitions: int | None = None
    dialect: str | None = None
    reads_file: bool = True


@contextmanager
def open_session(options: SessionOptions) -> Iterator[Session]:
    """A session on that target, with these tables and settings, and with those of `sparkfusion.toml`; closed, with its
    query cancelled, however the block ends. Errors of the block about a missing table get a hint how to add it.
    """
    import sparkfusion

    tables, file = options.tables, current_config_file()
    if file is not None and options.reads_file:
        tables = add_tables(tables, tables_of_file(file))
    config: dict[str, object] = dict(options.settings)
    if options.partitions is not None:
        config[TARGET_PARTITIONS] = options.partitions
    if options.dialect is not None:
        config["sparkfusion.dialect"] = options.dialect
    with open_target(options.target) as target, sparkfusion.connect(target, config=config) as session:
        for table in tables:
            register(session, table)
        try:
            yield session
        except UserError as error:
            error.hint = hint_of(error)
            raise
