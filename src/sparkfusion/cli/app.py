"""The command group: how errors are printed, and exit codes.

| code | meaning |
|------|---------|
| 0    | done |
| 1    | the query failed, or its answer is wrong |
| 2    | the command line was not understood |
| 3    | something was not distributed, and had to be |
| 4    | an answer was compared with nothing |
| 130  | Ctrl-C |
"""

from __future__ import annotations

import traceback
from typing import Any

import click

from sparkfusion.cli.commands.explain import explain
from sparkfusion.cli.commands.sql import sql
from sparkfusion.cli.commands.verify import verify
from sparkfusion.cli.commands.worker import worker
from sparkfusion.cli.ending import CANCELLED, Ending
from sparkfusion.cli.streams import discard_output
from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError, classify

FAILED = 1


class Application(click.Group):
    """Turns every error into one readable block on stderr."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException):
            raise
        except BrokenPipeError:
            discard_output()
            ctx.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            cancelled = _is_cancellation(error) or (isinstance(ctx.obj, Ending) and ctx.obj.interrupted)
            _report(error, "cancelled" if cancelled else _explanation(error), debug=ctx.params["debug"])
            ctx.exit(CANCELLED if cancelled else FAILED)


@click.group(cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sparkfusion")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def app(debug: bool) -> None:
    """Run SQL with DataFusion, distributed over tasks.

    \b
    Examples:
      sparkfusion sql -c "select count(*) from t" --table t=data/t.parquet
      sparkfusion explain -c "select a, sum(b) from t group by a" --table t=data/
      sparkfusion verify --file queries.sql --table t=data/ --partitions 2 --partitions 7
    """


app.add_command(sql)
app.add_command(explain)
app.add_command(verify)
app.add_command(worker)


def run(ending: Ending | None = None) -> int:
    """Run the command line; returns its exit code. `ending` knows of a Ctrl-C that DataFusion made another error of."""
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


def _is_cancellation(error: BaseException) -> bool:
    """Ctrl-C while DataFusion plans comes out as a SystemError that the KeyboardInterrupt is only the cause of."""
    seen: list[BaseException] = []  # `raise error from error` makes a ring
    found: BaseException | None = error
    while found is not None and found not in seen:
        if isinstance(found, KeyboardInterrupt | QueryCancelledError | click.Abort):
            return True
        seen.append(found)
        found = found.__cause__ or found.__context__
    return False


def _explanation(error: BaseException) -> str:
    found = error if isinstance(error, SparkfusionError) else classify(error)
    text = "\n  ".join([str(found), *getattr(error, "__notes__", ())])
    if isinstance(found, InternalError) and found.hint is None:
        text += "\n  hint: --debug shows where this happened"
    return text


def _report(error: BaseException, text: str, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
    click.echo(f"sparkfusion: {text}", err=True)
