"""`information_schema.df_settings` with the settings of sparkfusion in it.

The table is DataFusion's and lists DataFusion's options. While a query over it is planned, a view that has all settings
takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from datafusion import SessionContext

from sparkfusion.ids import new_query_id
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.session.sql_text import mask
from sparkfusion.session.statements import is_explain, is_query

_NO_ALIAS = (
    "where|order|group|having|limit|offset|fetch|on|using|join|inner|left|right|full|cross|natural|union|intersect"
    "|except|window|qualify|tablesample"
)
_SETTINGS_TABLE = re.compile(
    rf"\b(?:datafusion\s*\.\s*)?information_schema\s*\.\s*df_settings\b(?!\s*\.)"
    rf"(?P<alias>\s+(?!(?:{_NO_ALIAS})\b)(?:as\s+)?[a-z_\"`])?",
    re.IGNORECASE,
)


@contextmanager
def all_settings_listed(context: SessionContext, settings: SessionSettings, query: str) -> Iterator[str]:
    """The query to plan instead of `query`; the same one, if it does not read the table."""
    view = f"sparkfusion_settings_{new_query_id()}"
    text = name_settings_table(query, view)
    if text == query or not settings.information_schema:
        yield query
        return
    context.register_record_batches(view, [settings.as_table().to_batches()])
    try:
        yield text
    finally:
        context.deregister_table(view)


def name_settings_table(query: str, view: str) -> str:
    """The query over `view`, where it reads df_settings.

    >>> name_settings_table("select name from information_schema.df_settings where value = '1'", "v")
    "select name from v as df_settings where value = '1'"
    >>> name_settings_table("select s.name from information_schema.df_settings s", "v")
    'select s.name from v s'
    """
    masked = mask(query)
    if not is_query(query) and not is_explain(query):
        return query
    parts, position = [], 0
    for found in _SETTINGS_TABLE.finditer(masked):
        parts += [query[position : found.start()], view, "" if found["alias"] else " as df_settings"]
        position = found.start("alias") if found["alias"] else found.end()
    return "".join(parts) + query[position:]
