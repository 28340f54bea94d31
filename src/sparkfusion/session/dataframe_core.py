"""What a DataFrame is made of: the engine of its session, and a query."""

from __future__ import annotations

from typing import Self

import datafusion

from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery


class DataFrameCore:
    """The base of the classes that have the methods of `sparkfusion.DataFrame`."""

    def __init__(self, engine: Engine, query: LazyQuery) -> None:
        """Sessions make them: `Session.sql`, `table`, `read_parquet` and the like."""
        self._engine = engine
        self._query = query

    def _with(self, inner: datafusion.DataFrame) -> Self:
        """A DataFrame of the same session over another query."""
        return type(self)(self._engine, LazyQuery(inner))

    def count(self) -> int:
        """Run the query; the number of its rows.

        >>> orders.count()
        3
        """
        counted = call_datafusion(self._query.inner.aggregate, [], [datafusion.functions.count_star()])
        return int(self._engine.start(LazyQuery(counted)).read_all().column(0)[0].as_py())
