"""`sparkfusion bench`: TPC-H where the user's own queries run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkfusion.cli.ending import WRONG, Ending
from sparkfusion.cli.failures import is_cancellation
from sparkfusion.cli.options import SessionOptions, open_session, target_options
from sparkfusion.cli.progress_lines import progress_lines
from sparkfusion.errors import UserError

if TYPE_CHECKING:
    from sparkfusion.bench.bench_result import BenchResult
    from sparkfusion.bench.tpch_bench import TpchBench
    from sparkfusion.cli.progress_lines import ProgressLines


@click.command()
@target_options
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    show_default=True,
    help="Scale factor of the tables; 1 is 0.3 GB of Parquet files.",
)
@click.option("--queries", metavar="NUMBERS", default="", help="Some queries, such as 1,3,6.  [default: all 22]")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How often each query runs on each engine; the best time counts.",
)
@click.option(
    "--data",
    metavar="DIR",
    help="Keep the tables in this directory, and use them again. On a cluster it has to be a directory that every "
    "executor or worker reaches under the same path, such as a shared file system.  [default: a temporary directory, "
    "removed at the end]",
)
@click.option("--json", "json_file", metavar="FILE", help="Also write everything that was measured to this file.")
def bench(
    target: str | None,
    settings: tuple[tuple[str, str], ...],
    scale: float,
    queries: str,
    rounds: int,
    data: str | None,
    json_file: str | None,
) -> None:
    """Run TPC-H on your own machine or cluster, and compare times and answers.

    Each query runs on single-node DataFusion and on sparkfusion in turn; on Spark, also on Spark SQL. A ratio is the
    time of sparkfusion divided by that of the other. The tables are generated first. Needs the extra 'bench'.

    Ctrl-C stops it; what was measured until then is printed and written.

    \b
    Exit codes:
      0    all answers are equal
      1    an answer is different, or a query failed
      130  Ctrl-C

    \b
    Examples:
      sparkfusion bench
      sparkfusion bench --scale 10 --data tpch/ --queries 1,3,6 --rounds 3 --json times.json
      sparkfusion bench --connect spark
      sparkfusion bench --connect spark://host:7077 --data /shared/tpch --scale 100
      sparkfusion bench --connect flight://host:7070,other:7070 --data /shared/tpch
    """
    from sparkfusion.bench.tpc import TPCH
    from sparkfusion.bench.tpch_bench import BenchOptions, open_bench

    TPCH.choose(queries)  # report a wrong number, or a missing package, before Spark starts
    _check_file(json_file)
    options = BenchOptions(scale, queries, rounds, None if data is None else Path(data))
    with (
        open_session(SessionOptions(target, settings=settings, reads_file=False)) as session,
        progress_lines(session) as line,
        open_bench(session, options, lambda text: click.echo(text, err=True)) as running,
    ):
        try:
            _measure(running, line)
        finally:
            line.stop()
            _report(running.result, json_file)
    click.get_current_context().exit(0 if running.result.is_right else WRONG)


def _measure(running: TpchBench, line: ProgressLines) -> None:
    from sparkfusion.bench.bench_report import describe_query, describe_start

    ending = click.get_current_context().obj
    click.echo(describe_start(running.result))
    for number in running.result.asked:
        line.start()
        query = running.measure(
            number,
            line.step,
            lambda error: is_cancellation(error) or (isinstance(ending, Ending) and ending.interrupted),
        )
        line.stop()
        click.echo(describe_query(running.result, query))


def _report(result: BenchResult, json_file: str | None) -> None:
    from sparkfusion.bench.bench_report import describe_end

    for text in describe_end(result):
        click.echo(text)
    if json_file is not None:
        Path(json_file).write_text(json.dumps(result.to_json(), indent=2) + "\n", encoding="utf-8")
        click.echo(f"written to {json_file}", err=True)


def _check_file(path: str | None) -> None:
    """Refuse a file that cannot be written, before the run, which may take hours."""
    if path is None:
        return
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        raise UserError(
            f"cannot write {path!r}: it is a directory, or its directory does not exist", hint="give --json a file"
        )
