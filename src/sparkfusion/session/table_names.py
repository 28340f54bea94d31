"""Hints for errors about a table's name: which tables there are, and how a taken name can be freed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.sql_names import name_in_sql

PARAMETER_VIEW = re.compile(r"view_[0-9a-f_]{36}")
"""DataFusion's own names of DataFrames that are among the values of a query."""

_UNKNOWN = re.compile(
    r"table '([^']+)' not found|No table named '([^']*)'|(?:Table|View) '([^']+)' doesn't exist"
    r"|failed to resolve (?:schema|catalog): (.+)"
)
_TAKEN = re.compile(r"[Tt]able '?(.+?)'? already exists")
_FIELD = re.compile(r"No field named (\S+?)\.\s+Valid fields are (.+)\.$", re.DOTALL)
_NAME = re.compile(r'(?:"(?:[^"]|"")+"|[^\s,".]+)(?:\.(?:"(?:[^"]|"")+"|[^\s,".]+))*')
_FUNCTION = re.compile(r"Invalid function '([^']+)'\.(?!\s*Did you mean)")
ALL_FUNCTIONS = "select distinct routine_name as name from information_schema.routines"
"""The query for the names of all functions."""

_SHOWN = 5


def call_with_tables(context: SessionContext, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`call_datafusion`, where names of the context's tables may be wrong: errors then have a hint."""
    try:
        return call_datafusion(call, *args, **kwargs)
    except UserError as error:
        error.hint = error.hint or name_hint(error.message, context)
        raise


def is_unknown_table(message: str) -> bool:
    """Whether an error of DataFusion is about a table, a schema or a catalog that it does not know."""
    return _UNKNOWN.search(message) is not None


def name_hint(message: str, context: SessionContext) -> str | None:
    """What to do about a name that is unknown or taken; None if the message is about something else."""
    if taken := _TAKEN.search(message):
        free = f"session.deregister_table({taken[1]!r}) frees the name"
        return f"{free}; in SQL, DROP does, and CREATE OR REPLACE takes it over"
    if unknown := _UNKNOWN.search(message):
        with suppress(Exception):  # a user's own catalog may fail in its own way
            return known_tables(next(name for name in unknown.groups() if name is not None), context)
    if (field := _FIELD.search(message)) and (near := close_names(_last(field[1]), _NAME.findall(field[2]))):
        return f"did you mean {near[0]}?"
    if called := _FUNCTION.search(message):
        with suppress(Exception):
            rows = context.sql(ALL_FUNCTIONS).to_pylist()
            near = close_names(called[1], sorted(str(row["name"]) for row in rows))
            return f"did you mean {near[0]}?" if near else None
    return None


def _last(reference: str) -> str:
    """The last part of a column's name, without quotes."""
    return reference.rsplit(".", 1)[-1].strip('"')


def known_tables(wanted: str, context: SessionContext) -> str:
    """A few tables of the context, in words, those first whose names are like the one that was wanted."""
    names = sorted(_tables(context))
    if not names:
        return "no table is registered"
    near = close_names(wanted.rsplit(".", 1)[-1], names)
    meant = f"did you mean {near[0]}? " if near else ""
    ordered = [*near, *(name for name in names if name not in near)]
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"{meant}known tables: {', '.join(ordered[:_SHOWN])}{more}"


def close_names(wanted: str, names: list[str]) -> list[str]:
    """Those of the names that someone may have meant, the closest first; upper and lower case are the same.

    >>> close_names("Lineitems", ["orders", "lineitem", "other.lineitem"])
    ['lineitem', 'other.lineitem']
    """
    plain = {name: name.rsplit(".", 1)[-1].strip('"').lower() for name in names}
    near = difflib.get_close_matches(wanted.lower(), set(plain.values()), n=_SHOWN)
    return [name for like in near for name in names if plain[name] == like]


def _tables(context: SessionContext) -> Iterator[str]:
    """Every table as SQL names it, those of the default schema by themselves."""
    for catalog in context.catalog_names():
        for schema in context.catalog(catalog).names():
            for table in context.catalog(catalog).schema(schema).names():
                if schema == "information_schema" or PARAMETER_VIEW.fullmatch(table):
                    continue
                parts = [catalog, schema, table]
                skipped = 0 if catalog != "datafusion" else 1 if schema != "public" else 2
                yield ".".join(name_in_sql(part) for part in parts[skipped:])
