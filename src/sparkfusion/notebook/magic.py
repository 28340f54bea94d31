"""`%sparkfusion` and `%%sparkfusion`: SQL in a notebook. `%load_ext sparkfusion` registers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary

import IPython.display
from IPython.core.magic import no_var_expand

from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.notebook.cell_display import show_progress
from sparkfusion.notebook.magic_line import USAGE, MagicLine, named_values, parse_magic
from sparkfusion.session.dataframe import DataFrame, look_inside
from sparkfusion.session.script import ScriptStatement, locate_error, split
from sparkfusion.session.session import Session, connect
from sparkfusion.session.shown_rows import fetch_shown_rows

_publish: Any = IPython.display.publish_display_data
MAGIC_NAME = "sparkfusion"
SESSION = "session"
"""The name of the variable whose session is used by default."""


class SqlMagic:
    """The magic of one IPython, as a line and as a cell."""

    def __init__(self, shell: Any) -> None:
        """`shell`: IPython's InteractiveShell, or an object with its methods."""
        self._shell = shell
        self._progress: WeakKeyDictionary[Session, Callable[[], None]] = WeakKeyDictionary()

    def load(self) -> None:
        def sparkfusion(line: str, cell: str | None = None) -> DataFrame | None:
            with short_errors():
                if cell is None:
                    return self.run_line(line)
                self.run_cell(line, cell)
                return None

        sparkfusion.__doc__ = (__doc__ or "") + f"\n\n{USAGE}\n\ndocs/notebooks.md says more."
        self._shell.register_magic_function(_not_expanded(sparkfusion), "line_cell", MAGIC_NAME)

    def unload(self) -> None:
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop(MAGIC_NAME, None)
        for stop in self._progress.values():
            stop()
        self._progress.clear()

    def run_line(self, line: str) -> DataFrame | None:
        """Return the DataFrame of the statement, as in `df = %sparkfusion select 1`. A notebook shows it if it is not
        assigned."""
        asked = parse_magic(line)
        if not asked.sql:
            self._session(asked)
            return None
        made, _ = self._run(asked, asked.sql)
        return self._keep(asked, made) if made.columns else None

    def run_cell(self, line: str, cell: str) -> None:
        """Show the first rows of the last statement, or put its DataFrame into a variable."""
        asked = parse_magic(line)
        if asked.sql:
            raise UserError(
                f"cannot run the cell: {asked.sql!r} is not an option", hint=f"{USAGE}; SQL is below that line"
            )
        made, statements = self._run(asked, f"\n{cell}")  # the line of the magic counts as the first line of the cell
        if self._keep(asked, made) is not None and made.columns:
            with locate_error(statements[-1], statements):
                shown = fetch_shown_rows(*look_inside(made))
            _publish({"text/plain": shown.as_text(), "text/html": shown.as_html()})

    def _keep(self, asked: MagicLine, made: DataFrame) -> DataFrame | None:
        """Assign the DataFrame to the variable that was named, or return it if there is none."""
        if asked.to is None:
            return made
        self._shell.push({asked.to: made})
        return None

    def _run(self, asked: MagicLine, text: str) -> tuple[DataFrame, list[ScriptStatement]]:
        """The DataFrame of the last statement, and all statements. Only statements that are not queries have run."""
        session = self._session(asked)
        statements = split(text)
        if not statements:
            raise UserError("cannot run the cell: it has no statement", hint="write SQL below the line of the magic")
        dialect = asked.dialect or str(session.config["sparkfusion.dialect"])
        made: DataFrame | None = None
        for statement in statements:
            with locate_error(statement, statements):
                named = named_values(statement.sql, dialect, self._shell.user_ns)
                tables = {name: value for name, value in named.items() if isinstance(value, DataFrame)}
                values = {name: value for name, value in named.items() if name not in tables}
                made = session.sql(statement.sql, values or None, dialect=asked.dialect, **tables)
        assert made is not None
        return made, statements

    def _session(self, asked: MagicLine) -> Session:
        name = asked.session or SESSION
        found = self._shell.user_ns.get(name)
        if found is None and asked.session is None:
            found = connect()
            self._shell.push({name: found})
        if not isinstance(found, Session):
            what = f"it is a {type(found).__name__}" if found is not None else "there is no such variable"
            raise UserError(
                f"cannot use {name!r} as a session: {what}",
                hint=f"{name} = sparkfusion.connect() opens one; --session NAME names another variable",
            )
        self._set_progress(found, asked.progress)
        return found

    def _set_progress(self, session: Session, wanted: str | None) -> None:
        """Turn progress on or off. It is on from the first use of a session."""
        if wanted == "off":
            self._progress.pop(session, _nothing)()
            self._progress[session] = _nothing
        elif session not in self._progress or (wanted == "on" and self._progress[session] is _nothing):
            self._progress[session] = show_progress(session)


def _nothing() -> None:
    pass


def _not_expanded(function: Callable[..., Any]) -> Any:
    """Keep IPython from replacing $name and {name} before the SQL is read."""
    return cast(Any, no_var_expand)(function)


@contextmanager
def short_errors() -> Iterator[None]:
    """Let IPython show an error of sparkfusion, or Ctrl-C, without a traceback. The cell still fails."""
    try:
        yield
    except (SparkfusionError, KeyboardInterrupt) as error:
        text = "\n".join([str(error) or "stopped", *getattr(error, "__notes__", ())])
        shown = [f"\x1b[31m{type(error).__name__}\x1b[0m: {text}"]
        vars(error)["_render_traceback_"] = lambda: shown
        raise


_loaded: WeakKeyDictionary[Any, SqlMagic] = WeakKeyDictionary()


def load(shell: Any) -> None:
    """Register the magics, once for each IPython."""
    if shell not in _loaded:
        _loaded[shell] = SqlMagic(shell)
        _loaded[shell].load()


def unload(shell: Any) -> None:
    if shell in _loaded:
        _loaded.pop(shell).unload()
