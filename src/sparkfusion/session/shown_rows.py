"""The first rows of a query, as many as DataFusion's formatter shows: as text for `print`, as HTML for notebooks."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from datafusion.dataframe_formatter import get_formatter

from sparkfusion.errors import QueryCancelledError, SparkfusionError
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.rows_html import rows_html

_NOT_RUN = "not run: it writes, and runs when you call collect() or another action"
_PREFORMATTED = '<pre style="white-space: pre-wrap">{text}</pre>'


@dataclass(frozen=True)
class ShownRows:
    """What to show of a DataFrame: the first rows, or why there are none."""

    schema: pa.Schema
    rows: pa.Table | None
    has_more: bool = False
    why_none: str = ""

    def as_text(self) -> str:
        if self.rows is None:
            columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
            return f"DataFrame[{columns}]\n{self.why_none}"
        text: str = get_formatter().format_str(self.rows.to_batches(), self.rows.schema, self.has_more, table_uuid="")
        return text

    def as_html(self) -> str:
        if self.rows is None:
            return _PREFORMATTED.format(text=html.escape(self.as_text()))
        return rows_html(self.rows, f"the first {self.rows.num_rows} rows; there are more" if self.has_more else "")


def read_shown_rows(engine: Engine, query: LazyQuery, seconds: float | None = None) -> ShownRows:
    """`fetch_shown_rows`, with the error of the query instead of rows, because nobody expects errors of a `print`.

    Args:
        seconds: stop the query after this time. None: wait for the rows.
    """
    try:
        return fetch_shown_rows(engine, query, seconds)
    except SparkfusionError as error:
        return ShownRows(query.schema, None, why_none=f"the rows cannot be shown: {error}")


def fetch_shown_rows(engine: Engine, query: LazyQuery, seconds: float | None = None) -> ShownRows:
    """Run the query for as many rows as DataFusion's formatter shows, and one more to know whether there are more.

    A statement that writes is not run. Ctrl-C stops the query, and is passed on.
    """
    schema = query.schema
    if query.writes:
        return ShownRows(schema, None, why_none=_NOT_RUN)
    if seconds == 0:
        return ShownRows(schema, None, why_none="not run: sparkfusion.repr_seconds is 0; show() prints the first rows")
    wanted = get_formatter().max_rows
    rows = _read(engine, LazyQuery(query.inner.limit(wanted + 1), text=query.text), seconds)
    if rows is None:
        why = f"no rows after {seconds:g} seconds (sparkfusion.repr_seconds): show() waits for them"
        return ShownRows(schema, None, why_none=why)
    return ShownRows(schema, rows.slice(0, wanted), has_more=rows.num_rows > wanted)


def _read(engine: Engine, query: LazyQuery, seconds: float | None) -> pa.Table | None:
    """The rows; None if they took too long."""
    running = engine.start(query)
    if seconds is None:
        return running.read_all()
    with _Deadline(seconds, running.cancel) as deadline:
        try:
            return running.read_all()
        except QueryCancelledError:
            if deadline.is_over:
                return None
            raise


class _Deadline:
    """Calls a function if its block takes longer than this many seconds."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.is_over = False
        self._call = call
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        self.is_over = True
        self._call()

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
