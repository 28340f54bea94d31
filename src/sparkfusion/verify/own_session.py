"""Adapt a session of sparkfusion to the interface of verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import datafusion
import pyarrow as pa
from datafusion.plan import ExecutionPlan

from sparkfusion import config
from sparkfusion.errors import UserError
from sparkfusion.plan.stage import Distribution
from sparkfusion.plan.wire import decode, encode, partition_count
from sparkfusion.plan.wire.build import coalesce
from sparkfusion.session.dataframe import DataFrame, look_inside
from sparkfusion.session.engine import Engine
from sparkfusion.session.explaining import explain_query
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.planner import Planned
from sparkfusion.session.query import conform, decide_schema
from sparkfusion.session.session import Session, engine_of
from sparkfusion.worker.task_context import Surroundings, task_context


def _tell_nobody(leg: str) -> None:
    del leg


class OwnSession:
    """Makes DataFrames of a session's queries. `tell` is called with the next step of a verification, from any
    thread."""

    def __init__(self, session: Session, tell: Callable[[str], None] = _tell_nobody) -> None:
        self.context = engine_of(session).context
        self.config = session.config
        self.subscribe = session.subscribe
        self._session = session
        self._tell = tell

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> OwnDataFrame:
        return OwnDataFrame(self._session.sql(query, param_values), self._tell)


class OwnDataFrame:
    """A DataFrame that is verified once."""

    def __init__(self, dataframe: DataFrame, tell: Callable[[str], None] = _tell_nobody) -> None:
        self._engine, self._query = look_inside(dataframe)
        self._planned: Planned | None = None
        self._tell = tell
        self._collected = False

    def to_datafusion(self) -> datafusion.DataFrame:
        self._tell("comparing the answers" if self._collected else "single-node leg")
        return self._query.inner

    def distribution(self) -> Distribution:
        """How the query is distributed."""
        self._tell("planning")
        return self._plan().distribution

    def _plan(self) -> Planned:
        if self._planned is None:
            self._planned = self._engine.plan(self._query, split=True)
        return self._planned

    def only_distributed(self) -> str | None:
        return self._engine.tables.only_distributed(self._query.inner)

    def round_trip(self) -> pa.Table:
        self._tell("round-trip leg")
        return run_round_trip(self._engine, self._query, self._plan())

    def collect(self) -> pa.Table:
        self._tell("distributed leg")
        self._collected = True
        return self._engine.start(self._query, self._plan()).read_all()

    def explain_text(self) -> str:
        return explain_query(self._engine, self._query, self._plan())


def run_round_trip(engine: Engine, query: LazyQuery, planned: Planned) -> pa.Table:
    """The rows of a query whose plan is encoded and decoded once, and run as a whole in this process.

    If these rows are wrong, encoding lost something. If only the distributed answer is wrong, the fault is in its
    execution.
    """
    schema = query.schema
    if planned.plan is None:
        raise UserError(f"the query has no distributed plan: {planned.distribution.reason}")
    root = decode(planned.plan)
    if partition_count(root) > 1:
        root = coalesce(root)
    context = task_context(planned.options, Surroundings(config.machine_memory() // 2, prepare=engine.tables.prepare))
    decoded = ExecutionPlan.from_bytes(context, encode(root))
    batches = [batch.to_pyarrow() for batch in context.execute(decoded, 0)]
    batches = [batch for batch in batches if batch.num_rows]  # as everywhere, only batches with rows decide the schema
    schema = decide_schema(schema, batches[0].schema) if batches else schema
    return pa.Table.from_batches([conform(batch, schema) for batch in batches], schema=schema)
