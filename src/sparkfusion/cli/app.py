"""The command group: how errors are printed, and exit codes.

| code | meaning |
|------|---------|
| 0    | done |
| 1    | the query failed, its answer is wrong, or the doctor found something wrong |
| 2    | the command line is wrong, or names what is not there; nothing has run |
| 3    | something was not distributed, and had to be |
| 4    | an answer was compared with nothing |
| 130  | Ctrl-C |
"""

from __future__ import annotations

import traceback
from typing import Any

import click

from sparkfusion.cli.commands.bench import bench
from sparkfusion.cli.commands.doctor import doctor
from sparkfusion.cli.commands.explain import explain
from sparkfusion.cli.commands.sql import sql
from sparkfusion.cli.commands.verify import verify
from sparkfusion.cli.commands.worker import worker
from sparkfusion.cli.ending import CANCELLED, Ending
from sparkfusion.cli.failures import explain_failure, is_cancellation
from sparkfusion.cli.streams import discard_output

FAILED = 1


class Application(click.Group):
    """Prints every error as one readable block on stderr. Options without a command are passed to `sql`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [option for parameter in self.get_params(ctx) for option in parameter.opts]
        position = 1 if args[:1] == ["--debug"] else 0
        first = args[position] if len(args) > position else None
        if first is None or (first.startswith("-") and first not in own):
            args = [*args[:position], "sql", *args[position:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except BrokenPipeError:
            discard_output()
            ctx.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            cancelled = is_cancellation(error) or (isinstance(ctx.obj, Ending) and ctx.obj.interrupted)
            _report(error, "cancelled" if cancelled else explain_failure(error), debug=ctx.params["debug"])
            ctx.exit(CANCELLED if cancelled else FAILED)


@click.group(cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sparkfusion")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def app(debug: bool) -> None:
    """Run SQL with DataFusion, distributed over tasks.

    Without a command, this is an interactive shell, the same as `sparkfusion sql`.

    \b
    Examples:
      sparkfusion
      sparkfusion -t data/
      sparkfusion sql -c "select count(*) from t" --table t=data/t.parquet
      sparkfusion explain -c "select a, sum(b) from t group by a" --table t=data/
      sparkfusion verify --file queries.sql --table t=data/ --partitions 2 --partitions 7
    """


app.add_command(sql)
app.add_command(explain)
app.add_command(verify)
app.add_command(worker)
app.add_command(doctor)
app.add_command(bench)


def run(ending: Ending | None = None) -> int:
    """Run the command line; returns its exit code. `ending` remembers a Ctrl-C that DataFusion turned into another
    error."""
    try:
        code = app.main(prog_name="sparkfusion", standalone_mode=False, obj=ending)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("sparkfusion: cancelled", err=True)
        return CANCELLED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    return code if isinstance(code, int) else 0


def _report(error: BaseException, text: str, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    click.echo(f"sparkfusion: {text}", err=True)
