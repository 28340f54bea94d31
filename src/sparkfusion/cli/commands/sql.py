"""`sparkfusion sql`: run statements and print what they return."""

from __future__ import annotations

import sys

import click

from sparkfusion.cli.ending import Ending
from sparkfusion.cli.options import (
    SessionOptions,
    check_output,
    dialect_option,
    open_session,
    read_statements,
    session_options,
    source_options,
)
from sparkfusion.cli.output import (
    BINARY_FORMATS,
    OUTPUT_FORMATS,
    OutputFormat,
    describe_format,
    destination,
    format_for,
)
from sparkfusion.cli.progress_lines import progress_lines
from sparkfusion.cli.run_statement import describe_timing, run_statement
from sparkfusion.cli.tables import Table
from sparkfusion.extras import import_extra
from sparkfusion.session.script import locate_error


@click.command()
@source_options
@session_options
@dialect_option
@click.option(
    "--format",
    "form",
    type=click.Choice(OUTPUT_FORMATS),
    help="Output format.  [default: by the name of the output file, else table]",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    callback=check_output,
    help="Write to this file. It is created only if all statements succeed.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many rows the formats table, vertical and markdown show; the others are only counted. Other formats "
    "write all rows.",
)
@click.option("--partitions", type=click.IntRange(min=1), help="The partition count that DataFusion plans with.")
@click.option("--timing", is_flag=True, help="Print to stderr how long each statement took.")
def sql(
    text: str | None,
    file: str | None,
    target: str | None,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    dialect: str | None,
    form: OutputFormat | None,
    output: str | None,
    max_rows: int,
    partitions: int | None,
    timing: bool,
) -> None:
    """Run SQL statements and print what they return.

    Without -c and --file, this is an interactive shell; if stdin or stdout is not a terminal, statements are read from
    stdin. A path in single quotes can stand in place of a table.

    \b
    Examples:
      sparkfusion sql -t data/
      sparkfusion sql -c "select * from t limit 3" -t t=data/t.parquet
      sparkfusion sql -c "select * from 'data/*.parquet' limit 3"
      sparkfusion sql -f report.sql -t sales=csv:sales.txt --format csv -o report.csv
      sparkfusion sql -c "select count(*) from t" -t t=data/ -s sparkfusion.slots=4 --timing
      sparkfusion sql -c "select count(*) from t" -t t=/data/t/ --connect flight://host:7070,other:7070
      sparkfusion sql -c 'select id div 2, `id` from t order by 1' -t t=data/ --dialect spark
      cat q.sql | sparkfusion sql -t t=data/ --format jsonl | jq .
    """
    options = SessionOptions(target, tables, settings, partitions, dialect)
    if text is None and file is None:
        if output is None and sys.stdin.isatty() and sys.stdout.isatty():
            _run_shell(options, form or "table", max_rows, timing)
            return
        file = "-"
    chosen = form or format_for(output)
    if form is None and output is not None and (told := describe_format(output)) is not None:
        click.echo(f"sparkfusion: {told}; --format chooses one", err=True)
    statements = read_statements(text, file)
    with (
        destination(output) as out,
        open_session(options) as session,
        progress_lines(session) as line,
    ):
        for statement in statements:
            with locate_error(statement, statements):
                ran = run_statement(session, statement.sql, line, out, chosen, max_rows=max_rows)
            out.flush()
            if timing:
                click.echo(describe_timing(line, ran), err=True)


def _run_shell(options: SessionOptions, form: OutputFormat, max_rows: int, timing: bool) -> None:
    if form in BINARY_FORMATS:
        raise click.UsageError(rf"a terminal cannot show {form}; in the shell, \once result.{form} writes it to a file")
    import_extra("prompt_toolkit", "cli", "the shell")
    import_extra("pygments", "cli", "the shell")
    from sparkfusion.cli.shell.prompt import Prompt
    from sparkfusion.cli.shell.shell import Shell
    from sparkfusion.cli.shell.shell_state import ShellState

    context = click.get_current_context()
    ending = context.obj if isinstance(context.obj, Ending) else None
    with Shell(options, ShellState(form=form, max_rows=max_rows, timing=timing), ending) as shell:
        shell.run(Prompt(shell))
