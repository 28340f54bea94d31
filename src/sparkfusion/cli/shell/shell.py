"""The shell: it reads statements and commands and runs them, until the user leaves."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click
import pyarrow as pa

from sparkfusion.cli.ending import Ending
from sparkfusion.cli.failures import explain_failure, is_cancellation
from sparkfusion.cli.options import SessionOptions, open_session
from sparkfusion.cli.output import HELD_FORMATS, destination, format_for, write
from sparkfusion.cli.progress_lines import ProgressLines, progress_lines
from sparkfusion.cli.run_statement import describe_timing, run_statement
from sparkfusion.cli.shell.backslash import run_command
from sparkfusion.cli.shell.known_names import NameCache
from sparkfusion.cli.shell.pager import Screen, show
from sparkfusion.cli.shell.shell_state import LeaveShell, ShellState
from sparkfusion.config.config_file import current_config_file
from sparkfusion.errors import UserError
from sparkfusion.session.script import ScriptStatement, split

if TYPE_CHECKING:
    from sparkfusion import Session

_GREETING = r"Statements end with a semicolon. \? lists commands, Ctrl-C cancels a query, Ctrl-D leaves."


class StatementInput(Protocol):
    """Where a shell gets its statements from."""

    def read(self) -> str:
        """The next statements, or a command. Raises EOFError at the end, and KeyboardInterrupt if the typed text is
        dropped."""
        ...


class Shell:
    """The interactive shell, with one session at a time. Errors and Ctrl-C end a statement, not the shell."""

    def __init__(self, options: SessionOptions, state: ShellState, ending: Ending | None = None) -> None:
        file = current_config_file()
        self.options = replace(options, target=options.target or (file and file.on) or "local")
        self.state = state
        self.names = NameCache(lambda: self.session)
        self._ending = ending
        self._open = ExitStack()
        self.session, self._line = self._enter(self._open, self.options)

    @staticmethod
    def _enter(stack: ExitStack, options: SessionOptions) -> tuple[Session, ProgressLines]:
        with ExitStack() as opening:
            session = opening.enter_context(open_session(options))
            line = opening.enter_context(progress_lines(session))
            stack.push(opening.pop_all())
        return session, line

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def title(self) -> str:
        """The text of the prompt: the program, and where tasks run if that is not in process."""
        return "sparkfusion" if self.target == "local" else f"sparkfusion {self.target}"

    @property
    def target(self) -> str:
        """Where tasks run, without a token."""
        return (self.options.target or "local").partition("?")[0]

    def run(self, statements: StatementInput) -> None:
        """Read and run statements until the input ends or the user leaves."""
        click.echo(_GREETING)
        while True:
            if self._ending is not None:
                self._ending.next_statement()
            try:
                text = statements.read()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            try:
                self.take(text)
            except LeaveShell:
                return

    def take(self, text: str) -> bool:
        """Run the typed text, up to the first error. Returns whether there was no error."""
        try:
            if text.lstrip().startswith("\\") or text.strip().lower() in ("quit", "exit", "help"):
                run_command(self, text.strip())
            else:
                for statement in split(text):
                    self._run(statement)
        except LeaveShell:
            raise
        except (Exception, KeyboardInterrupt) as error:
            self._report(error)
            return False
        finally:
            self.names.forget()
        return True

    def connect(self, target: str) -> None:
        """Continue with a session on another target. The old session stays if the new one cannot be opened."""
        options = replace(self.options, target=target)
        with ExitStack() as fresh:
            session, line = self._enter(fresh, options)
            old, self._open = self._open, fresh.pop_all()
        self.session, self._line, self.options = session, line, options
        old.close()

    def run_file(self, path: str) -> None:
        """Run the statements of a file, up to the first error, which names the line."""
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {path!r}: {error}") from error
        for statement in split(text):
            try:
                self._run(statement)
            except Exception as error:
                error.add_note(f"in the statement that begins at line {statement.line} of {path}")
                raise

    def answer(self, sql: str, choose: Callable[[pa.Table], pa.Table] = lambda rows: rows) -> None:
        """Show the rows of a statement that the shell itself made. It is in DataFusion's dialect, whatever the
        session's is."""
        rows = choose(self.session.sql(sql, dialect="datafusion").collect())
        screen = Screen()
        write(rows.schema, rows.to_batches(), screen, "table", max_rows=sys.maxsize)
        show(screen.getvalue(), paging=self.state.paging)

    def explain(self, *, analyze: bool) -> None:
        """Show how the last query was distributed."""
        if self.state.last_query is None:
            raise UserError("there is no query to explain yet", hint="run one first")
        if analyze:
            self._line.start()
        try:
            shown = self.session.lazy_sql(self.state.last_query).explain_text(analyze=analyze)
        finally:
            self._line.stop()
        show(shown.rstrip("\n") + "\n", paging=self.state.paging)

    def _run(self, statement: ScriptStatement) -> None:
        state = self.state
        once, state.once = state.once, None
        if once is not None:
            with destination(once) as out:
                form = format_for(once)
                ran = run_statement(self.session, statement.sql, self._line, out, form, max_rows=sys.maxsize)
            click.echo(f"wrote {once}")
        elif state.form in HELD_FORMATS:
            screen = Screen()
            ran = run_statement(
                self.session, statement.sql, self._line, screen, state.form, max_rows=state.max_rows, more=r"\rows"
            )
            show(screen.getvalue(), paging=state.paging)
        else:
            ran = run_statement(
                self.session, statement.sql, self._line, sys.stdout, state.form, max_rows=state.max_rows
            )
            sys.stdout.flush()
        if ran.rows is not None:
            state.last_query = statement.sql
        if state.timing:
            click.echo(describe_timing(self._line, ran), err=True)
        elif ran.rows is None:
            click.echo("done", err=True)

    def _report(self, error: BaseException) -> None:
        cancelled = is_cancellation(error) or (self._ending is not None and self._ending.interrupted)
        context = click.get_current_context(silent=True)
        if not cancelled and context is not None and context.find_root().params.get("debug"):
            traceback.print_exception(error)
        click.echo("cancelled" if cancelled else f"error: {explain_failure(error)}", err=True)
