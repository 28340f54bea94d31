"""The prompt: editing over several lines, history, highlighting, completion."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import has_completions, has_focus, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer, PygmentsLexer
from prompt_toolkit.styles import Style

from sparkfusion.cli.shell.backslash import COMMANDS
from sparkfusion.cli.shell.completion import SqlCompleter
from sparkfusion.session.sql_text import mask

if TYPE_CHECKING:
    from sparkfusion.cli.shell.shell import Shell

WORDS = ("quit", "exit", "help")
STYLE = Style.from_dict({
    "prompt": "bold",
    "pygments.keyword": "ansiblue bold",
    "pygments.literal.string": "ansigreen",
    "pygments.literal.number": "ansicyan",
    "pygments.comment": "italic ansibrightblack",
    "auto-suggestion": "ansibrightblack",
})  # fmt: skip


def is_complete(text: str) -> bool:
    """Whether Enter runs what was typed: a command of the shell, or a statement that ends with a semicolon.

    >>> is_complete("select 1"), is_complete("select ';"), is_complete("select 1; -- one"), is_complete("\\\\d")
    (False, False, True, True)
    """
    code = mask(text + "\n").strip()  # with the line end, a quote that is not closed hides the last character too
    return not code or code.startswith("\\") or code.endswith(";") or code.lower() in WORDS


class Prompt:
    """Reads from the terminal. Ctrl-D raises EOFError, Ctrl-C KeyboardInterrupt."""

    def __init__(self, shell: Shell) -> None:
        commands = {name: command.takes for command in COMMANDS for name in command.names}
        self._shell = shell
        self._session: PromptSession[str] = PromptSession(
            history=open_history(),
            lexer=sql_lexer(),
            completer=SqlCompleter(shell.names.names, commands),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            key_bindings=_key_bindings(),
            multiline=True,
            prompt_continuation=lambda width, _number, _wraps: "-> ".rjust(width),
            style=STYLE,
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
        )

    def read(self) -> str:
        """The next statements, or a command of the shell."""
        return self._session.prompt([("class:prompt", f"{self._shell.title}> ")], handle_sigint=False)


def sql_lexer() -> Lexer:
    """The lexer that marks the parts of a statement; `STYLE` gives them colours."""
    from pygments.lexers.sql import SqlLexer

    return PygmentsLexer(SqlLexer)


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus("DEFAULT_BUFFER") & ~is_searching)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # accepts the selected completion
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    @bindings.add("escape", filter=has_completions, eager=True)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    return bindings


class _CarefulHistory(FileHistory):
    """A history file without entries that contain a token."""

    def store_string(self, string: str) -> None:
        if "token=" not in string:
            super().store_string(string)


def open_history() -> History:
    """The history file, which only its owner may read; a history in memory if the file cannot be written."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "sparkfusion" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        if os.access(path, os.R_OK | os.W_OK):
            return _CarefulHistory(str(path))
    except OSError:
        pass
    return InMemoryHistory()
