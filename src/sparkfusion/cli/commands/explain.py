"""`sparkfusion explain`: how statements would be distributed, or how they were."""

from __future__ import annotations

from typing import get_args

import click

from sparkfusion.cli.options import (
    SessionOptions,
    check_output,
    dialect_option,
    open_session,
    read_statements,
    session_options,
    source_options,
)
from sparkfusion.cli.output import destination
from sparkfusion.cli.progress_lines import progress_lines
from sparkfusion.cli.table_sources import register_paths
from sparkfusion.cli.tables import Table
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.session.script import locate_error


@click.command()
@source_options
@session_options
@dialect_option
@click.option(
    "--analyze", is_flag=True, help="Run the query and show rows, bytes and times of its stages and operators."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(ExplainFormat)),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("-o", "--output", metavar="FILE", callback=check_output, help="Write to this file.")
@click.option(
    "--html",
    metavar="FILE",
    callback=check_output,
    help="Write a page with graph and timeline: the same as --format html -o FILE.",
)
@click.option(
    "--from-log",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Show a past query from its event log (sparkfusion.event_log). Needs --html or --format json.",
)
@click.option("--partitions", type=click.IntRange(min=1), help="The partition count that DataFusion plans with.")
def explain(
    text: str | None,
    file: str | None,
    target: str | None,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    dialect: str | None,
    analyze: bool,
    form: ExplainFormat,
    output: str | None,
    html: str | None,
    from_log: str | None,
    partitions: int | None,
) -> None:
    """Show the stages of SQL statements, or why they run on a single node.

    \b
    Examples:
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/
      sparkfusion explain --analyze -c "select a, count(*) from t group by a" -t t=data/
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/ --connect spark
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/ --format dot | dot -Tsvg > plan.svg
      sparkfusion explain --analyze -c "select a, count(*) from t group by a" -t t=data/ --html plan.html
      sparkfusion explain --from-log logs/20260101T120000Z-0123456789ab.jsonl --html plan.html
    """
    if html is not None:
        if output is not None or form != "text":
            raise click.UsageError("--html names the file and the format; leave out --output and --format")
        form, output = "html", html
    if from_log is not None:
        if text is not None or file is not None or analyze:
            raise click.UsageError("--from-log shows a query that has run; leave out -c, -f and --analyze")
        _show_log(from_log, form, output)
        return
    statements = read_statements(text, file)
    if form == "html" and len(statements) > 1:
        raise click.UsageError(f"a page shows one statement, and there are {len(statements)}; use --set for settings")
    with (
        destination(output) as out,
        open_session(SessionOptions(target, tables, settings, partitions, dialect)) as session,
        progress_lines(session) as line,
    ):
        for statement in statements:
            if analyze:
                line.start()
            with locate_error(statement, statements):
                register_paths(session, statement.sql)
                shown = session.lazy_sql(statement.sql).explain_text(analyze=analyze, format=form)
            line.stop()
            out.write(shown.rstrip("\n") + "\n")
            out.flush()  # the next statement may take long
    _tell_page(form, output)


def _show_log(path: str, form: ExplainFormat, output: str | None) -> None:
    if form not in ("json", "html"):
        raise click.UsageError("--from-log shows a query as a page (--html FILE) or as --format json")
    from sparkfusion.observe.log_lines import to_json
    from sparkfusion.observe.page import render_page
    from sparkfusion.observe.past_queries import read_model

    model = read_model(path)
    with destination(output) as out:
        out.write(render_page(model) if form == "html" else to_json(model, indent=2) + "\n")
    _tell_page(form, output)


def _tell_page(form: ExplainFormat, output: str | None) -> None:
    if form == "html" and output is not None:
        click.echo(f"open {output} in a browser", err=True)
