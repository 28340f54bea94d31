"""`sparkfusion verify`: check that distributed queries give their single-node answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from sparkfusion.cli.ending import WRONG
from sparkfusion.cli.options import SessionOptions, open_session, read_statements, session_options, source_options
from sparkfusion.cli.output import PipeConsole, count_of
from sparkfusion.cli.progress_lines import progress_lines
from sparkfusion.cli.streams import discard_output
from sparkfusion.cli.table_sources import register_paths
from sparkfusion.cli.tables import Table, hint_of
from sparkfusion.session.statements import is_query

if TYPE_CHECKING:
    from sparkfusion import Session
    from sparkfusion.verify import Report, VerifyResult

NOT_DISTRIBUTED = 3
NOT_COMPARED = 4
BYTES_PER_PARTITION = "sparkfusion.bytes_per_partition"


@dataclass(frozen=True)
class Query:
    """A statement of the script and the name it has in the report."""

    name: str
    sql: str

    @property
    def is_verifiable(self) -> bool:
        """Whether it is a query, whose answers can be compared. Of the other statements, only DDL and SET are run."""
        return is_query(self.sql)


@click.command()
@source_options
@session_options
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    multiple=True,
    default=(4,),
    show_default="4",
    help="The partition count that DataFusion plans with. Can be repeated to verify with several.",
)
@click.option(
    "--reproducers",
    metavar="DIR",
    help="Write the query, the plans and both answers of each failure to this directory.",
)
@click.option("--require-distributed", is_flag=True, help="Exit with 3 if any query was not distributed.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
def verify(
    text: str | None,
    file: str | None,
    target: str | None,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    partitions: tuple[int, ...],
    reproducers: str | None,
    require_distributed: bool,
    as_json: bool,
) -> None:
    """Compare the distributed answer of queries with the single-node answer.

    If --file is a directory, every .sql file in it is read. Small queries are distributed too, unless you set
    sparkfusion.bytes_per_partition. DDL and SET are run, because later queries may need them. Statements that write,
    such as INSERT and COPY, are not run; they count as queries that could not be compared.

    \b
    Exit codes:
      0  every answer was compared and is right, and a query was distributed
      1  an answer is wrong, or a query failed
      2  the command line is wrong
      3  no query was distributed; with --require-distributed: not every query
      4  an answer could not be compared, or there was no query

    \b
    Examples:
      sparkfusion verify -c "select a, sum(b) from t group by a" -t t=data/
      sparkfusion verify -f queries/ -t t=data/ --partitions 2 --partitions 7 --require-distributed
      sparkfusion verify -f queries/ -t t=/data/t/ --connect flight://host:7070,other:7070
      sparkfusion verify -f queries.sql -t t=data/ --reproducers failures/ --json > report.json
    """
    from sparkfusion.verify import Report

    queries = _read_queries(text, file)
    settings = ((BYTES_PER_PARTITION, "1"), *settings)
    report = Report()
    console = PipeConsole(highlight=False, soft_wrap=True)
    for count in partitions:
        with open_session(SessionOptions(target, tables, settings, count)) as session:
            for result in _results(session, queries, count if len(partitions) > 1 else None, reproducers):
                report.add(result)
                if not as_json:
                    with _survive_closed_pipe():
                        _print_result(console, result)
    with _survive_closed_pipe():
        if as_json:
            click.echo(report.to_json_text())
        else:
            console.print(_summary(report))
    code, warning = _verdict(report, require_distributed)
    if warning is not None:
        click.secho(f"warning: {warning}", err=True, fg="red", bold=True)
    click.get_current_context().exit(code)


@contextmanager
def _survive_closed_pipe() -> Iterator[None]:
    """Keep the exit code of the verification if the reader of the report closes the pipe."""
    try:
        yield
    except BrokenPipeError:
        discard_output()
        click.echo("warning: the report was not read to its end", err=True)


def _read_queries(text: str | None, file: str | None) -> list[Query]:
    """The queries, named by their file, and by their line if a file has several."""
    if file is not None and Path(file).is_dir():
        scripts = sorted(Path(file).glob("*.sql"))
        if text is not None or not scripts:
            raise click.UsageError(
                "give either -c SQL or --file FILE" if text is not None else f"no .sql files in {file!r}"
            )
        return [query for script in scripts for query in _name_queries(script.stem, None, str(script))]
    return _name_queries("" if file in (None, "-") else Path(str(file)).stem, text, file)


def _name_queries(base: str, text: str | None, file: str | None) -> list[Query]:
    statements = read_statements(text, file)
    if base and len(statements) == 1:
        return [Query(base, statements[0].sql)]
    return [Query(f"{base}:{s.line}" if base else f"query {n}", s.sql) for n, s in enumerate(statements, 1)]


def _results(
    session: Session, queries: list[Query], partitions: int | None, reproducers: str | None
) -> Iterator[VerifyResult]:
    from sparkfusion.session.dataframe import look_inside
    from sparkfusion.verify import verify_query
    from sparkfusion.verify.own_session import OwnSession

    with progress_lines(session) as line:
        for query in queries:
            register_paths(session, query.sql)
            if not query.is_verifiable and not look_inside(session.lazy_sql(query.sql))[1].writes:
                continue  # DDL and SET have been run
            name = query.name if partitions is None else f"{query.name} @{partitions}"
            line.start()
            result = verify_query(OwnSession(session, line.step), query.sql, name=name, reproducer_dir=reproducers)
            line.stop()
            yield result


def _print_result(console: Console, result: VerifyResult) -> None:
    seconds = result.find_leg("distributed").seconds
    shape = f"{count_of(result.stages, 'stage')}, {count_of(result.tasks, 'task')}, {seconds:.3f} s"
    console.print(Text.assemble((f"{result.outcome.value:<16}", _style(result)), f" {result.name or '':<20} {shape}"))
    if result.outcome.failed:
        details = result.describe().splitlines()[1:]
        console.print(Text("\n".join([f"  {result.reason}"] * bool(result.reason) + details)))
        if result.reproducer is not None:
            console.print(Text(f"  reproducer: {result.reproducer}"))
    elif result.reason is not None:
        console.print(Text(f"  {result.reason}", style="dim"))
        error = result.find_leg("distributed").error
        hint = None if error is None else hint_of(error)
        if hint is not None:
            console.print(Text(f"  hint: {hint}"))


def _style(result: VerifyResult) -> str:
    if result.passed:
        return "green"
    return "bold red" if result.outcome.failed else "yellow"


def _summary(report: Report) -> str:
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in report.counts.items() if count)
    return f"{report.total} verified: {counts}" if report.total else "nothing to verify"


def _verdict(report: Report, require_distributed: bool) -> tuple[int, str | None]:
    """The exit code, and a warning if not every answer was compared or distributed."""
    from sparkfusion.verify import Outcome

    alone = report.counts[Outcome.NOT_DISTRIBUTED]
    if report.failures:
        return WRONG, None
    if report.total == 0:
        return NOT_COMPARED, "there was no query, so nothing was verified"
    if report.not_compared:
        return NOT_COMPARED, f"could not be compared: {report.not_compared} of {report.total} queries"
    if report.really_distributed == 0:
        return NOT_DISTRIBUTED, "no query was distributed, so nothing was verified"
    if alone:
        words = f"not distributed, so their check proves nothing: {alone} of {report.total} queries"
        return NOT_DISTRIBUTED if require_distributed else 0, words
    return 0, None
