"""DataFusion's messages for users: without names of ours or of Rust, and without misleading suggestions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_NO_STORE = re.compile(r"(?:Internal error: )?No suitable object store found for (\S+)\. See `RuntimeEnv::\w+`\.?")
_TAKEN = re.compile(
    r"(?:Execution error: )?ValueError\(['\"](?P<said>The table .+? already exists)['\"]\)"
    r"(?: in the Python function \w+ \(.*?\))?"
)
_PARSER = re.compile(r'SQL error: ParserError\("(?P<said>.*)"\)', re.DOTALL)
_QUALIFIED = re.compile(r'(?:"\?table\?"|\?table\?|"?sparkfusion_(?:copy|rows)\w*"?)\.')
_OUR_TABLE = re.compile(r"'?\bsparkfusion_(?:copy_\w+|rows)\b'?|'?\?table\?'?")
_SUGGESTION = re.compile(
    r"(?P<before>(?:Invalid function '|No field named )(?P<meant>[^\n']+?)'?\.)"
    r"(?P<said>\s*Did you mean '(?P<other>[^']+)'\?)"
)
_PLAUSIBLE = 0.75
_PREFIXES = re.compile(r"(?:(?:DataFusion|Arrow|Csv|Parser|Json|External) error: )+")
_LINE = re.compile(r",? (?:at|for|on) line \d+(?:\. Row data: .*)?", re.DOTALL)
_COLUMN = re.compile(r"\bcolumn (\d+)\b")
_SHOWN_CHARACTERS = 120


def for_users(text: str) -> str:
    """The message as a user should read it.

    >>> for_users("Invalid function 'explode'.\\nDid you mean 'encode'?")
    "Invalid function 'explode'."
    >>> for_users("Invalid function 'lenght'.\\nDid you mean 'length'?")
    "Invalid function 'lenght'.\\nDid you mean 'length'?"
    >>> for_users('SQL error: ParserError("Expected: an expression, found: EOF")')
    'SQL error: Expected: an expression, found: EOF'
    >>> for_users('No field named zz. Valid fields are "?table?".a, "?table?".b.')
    'No field named zz. Valid fields are a, b.'
    >>> for_users("No suitable object store found for s3://b/x. See `RuntimeEnv::register_object_store`.")
    'no object store is registered for s3://b/x: session.register_object_store("s3://", …) adds one'
    >>> for_users("Execution error: ValueError('The table t already exists') in the Python function f (x.py, line 1)")
    'The table t already exists'
    """
    text = _PARSER.sub(r"SQL error: \g<said>", text)
    text = _TAKEN.sub(r"\g<said>", _NO_STORE.sub(_no_store, text))
    text = _OUR_TABLE.sub("the query", _QUALIFIED.sub("", text))
    return _SUGGESTION.sub(lambda found: found["before"] + (found["said"] if _is_plausible(found) else ""), text)


def about_line(text: str, columns: Sequence[str]) -> str:
    """DataFusion's message about a line, without its own line number, and with the column's name.

    >>> about_line("Parser error: Error while parsing value 'x' as type 'Int64' for column 0 at line 7", ["id"])
    "Error while parsing value 'x' as type 'Int64' for column 'id'"
    """

    def name_column(found: re.Match[str]) -> str:
        index = int(found[1])
        return f"column {columns[index]!r}" if index < len(columns) else found[0]

    return _COLUMN.sub(name_column, _LINE.sub("", _PREFIXES.sub("", text)).split("\n")[0])


def shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _no_store(found: re.Match[str]) -> str:
    scheme = found[1].split("://")[0]
    return f'no object store is registered for {found[1]}: session.register_object_store("{scheme}://", …) adds one'


def _is_plausible(found: re.Match[str]) -> bool:
    """Whether one name may be a typo for the other."""
    meant, other = (name.rsplit(".", 1)[-1].strip('"').lower() for name in (found["meant"], found["other"]))
    return SequenceMatcher(None, meant, other).ratio() > _PLAUSIBLE
