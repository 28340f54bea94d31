"""Complete what a person has typed: keywords, tables, columns, functions, settings, commands, paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from sparkfusion.cli.output import OUTPUT_FORMATS
from sparkfusion.cli.shell.known_names import KnownNames
from sparkfusion.session.sql_names import name_in_sql
from sparkfusion.session.sql_text import mask

_WORDS = (
    "all analyze and any as asc between by case cast column copy create cross current date delete desc describe "
    "distinct drop else end escape except exclude execute exists explain external extract false fetch filter first "
    "following for format from full group having ilike in inner insert intersect interval into is join last lateral "
    "left like limit location natural not null nulls offset on or order outer over partition partitioned preceding "
    "prepare qualify range recursive replace reset right row rows schema select set show similar stored table "
    "tables then time timestamp to true unbounded union unnest update using values verbose view when where window "
    "with"
)
KEYWORDS = tuple(_WORDS.split())
_WORD = re.compile(r"[\w.]*$")
_SETTING = re.compile(r"\s*(?:set|show|reset)\s+[\w.]*$", re.IGNORECASE)
_TABLE = re.compile(r"(?:\b(?:from|join|into|table|describe|update|copy)|,)\s+(?P<name>[\w.]*)$", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(select|from|join|where|group|order|on)\b", re.IGNORECASE)


class SqlCompleter(Completer):
    """Completes one statement, or a command of the shell."""

    def __init__(self, names: Callable[[], KnownNames], commands: dict[str, str]) -> None:
        """`commands`: the shell's commands, each with the kind of its argument (`ShellCommand.takes`)."""
        self._names = names
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("\\"):
            yield from self._of_command(before, complete_event)
            return
        quote = open_quote(before)
        if quote is not None:
            typed = before[quote + 1 :]
            yield from self._paths.get_completions(Document(typed), complete_event)
            return
        word = _WORD.search(before)
        typed = word.group() if word is not None else ""
        yield from _completions(typed, self._candidates(document.text, before))

    def _of_command(self, before: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, argument = before.partition(" ")
        if not space:
            yield from _completions(name, self._commands)
            return
        match self._commands.get(name):
            case "table":
                yield from _completions(argument, map(name_in_sql, self._names().columns))
            case "format":
                yield from _completions(argument, OUTPUT_FORMATS)
            case "switch":
                yield from _completions(argument, ("on", "off"))
            case "target":
                yield from _completions(argument, ("local", "spark", "flight://"))
            case "path":
                yield from self._paths.get_completions(Document(argument), event)

    def _candidates(self, text: str, before: str) -> Iterator[str]:
        """The possible completions, the likeliest first."""
        known = self._names()
        if _SETTING.match(before):
            yield from known.settings
            return
        tables = [name_in_sql(table) for table in known.columns]
        if _names_table(before):
            yield from tables
            return
        words = set(re.findall(r"\w+", text.lower()))
        named = [columns for table, columns in known.columns.items() if table.lower() in words]
        for columns in named or known.columns.values():
            yield from map(name_in_sql, columns)
        yield from tables
        yield from KEYWORDS
        yield from known.functions


def _names_table(before: str) -> bool:
    """Whether the name of a table comes next. After a comma it does in a FROM clause.

    >>> _names_table("select a, "), _names_table("select a from t, ")
    (False, True)
    """
    masked = mask(before)
    found = _TABLE.search(masked)
    if found is None:
        return False
    clauses = _CLAUSE.findall(masked)
    is_list = masked[found.start()] == ","
    return not is_list or (bool(clauses) and clauses[-1].lower() == "from")


def open_quote(before: str) -> int | None:
    """The start of the quoted text that the cursor is in, if a path belongs there.

    >>> open_quote("select * from 'data/"), open_quote("select 'a'")
    (14, None)
    """
    start = before.rfind("'")
    if start < 0 or before.count("'") % 2 == 0:
        return None
    return start


def _completions(typed: str, candidates: Iterable[str]) -> Iterator[Completion]:
    """The candidates that begin with the typed text, each once. Keywords have the case of the typed text."""
    small = typed.lower()
    seen = set()
    for each in candidates:
        if each.lower().startswith(small) and each not in seen:
            seen.add(each)
            yield Completion(each.upper() if typed.isupper() and each in KEYWORDS else each, -len(typed))
