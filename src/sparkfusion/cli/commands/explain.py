"""`sparkfusion explain`: how statements would be distributed, or how they were."""

from __future__ import annotations

from typing import Literal, get_args

import click

from sparkfusion.cli.options import dialect_option, open_session, read_statements, session_options, source_options
from sparkfusion.cli.output import destination
from sparkfusion.cli.progress_line import progress_line
from sparkfusion.cli.script import locate_error
from sparkfusion.cli.tables import Table

ExplainFormat = Literal["text", "json", "dot"]


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
@click.option("-o", "--output", metavar="FILE", help="Write to this file.")
@click.option("--partitions", type=click.IntRange(min=1), help="The partition count that DataFusion plans with.")
def explain(
    text: str | None,
    file: str | None,
    target: str,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    dialect: str | None,
    analyze: bool,
    form: ExplainFormat,
    output: str | None,
    partitions: int | None,
) -> None:
    """Show the stages of SQL statements, or why they run on a single node.

    \b
    Examples:
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/
      sparkfusion explain --analyze -c "select a, count(*) from t group by a" -t t=data/
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/ --connect spark
      sparkfusion explain -c "select a, count(*) from t group by a" -t t=data/ --format dot | dot -Tsvg > plan.svg
    """
    statements = read_statements(text, file)
    with (
        destination(output) as out,
        open_session(target, tables, settings, partitions, dialect) as session,
        progress_line(session) as line,
    ):
        for statement in statements:
            if analyze:
                line.start()
            with locate_error(statement, statements):
                shown = session.lazy_sql(statement.sql).explain_text(analyze=analyze, format=form)
            line.stop()
            out.write(shown.rstrip("\n") + "\n")
