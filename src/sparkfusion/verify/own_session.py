"""A session of sparkfusion, as the harness asks for one."""

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
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.query import conform, decide_schema
from sparkfusion.session.session import Session
from sparkfusion.worker.task_context import Surroundings, task_context


def _tell_nobody(leg: str) -> None:
    del leg


class OwnSession:
    """Makes frames of a session's queries.

    Args:
        tell: told what a verification does next, from any thread.
    """

    def __init__(self, session: Session, tell: Callable[[str], None] = _tell_nobody) -> None:
        self.context = session.context
        self.config = session.config
        self.subscribe = session.subscribe
        self._session = session
        self._tell = tell

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> OwnFrame:
        return OwnFrame(self._session.sql(query, param_values), self._tell)


class OwnFrame:
    """A DataFrame that is verified once."""

    def __init__(self, frame: DataFrame, tell: Callable[[str], None] = _tell_nobody) -> None:
        self._frame = frame
        self._tell = tell
        self._collected = False

    def to_datafusion(self) -> datafusion.DataFrame:
        self._tell("comparing the answers" if self._collected else "single-node leg")
        return self._frame.to_datafusion()

    def distribution(self) -> Distribution:
        self._tell("planning")
        return self._frame.distribution()

    def only_distributed(self) -> str | None:
        engine, query = look_inside(self._frame)
        return engine.tables.only_distributed(query.inner)

    def round_trip(self) -> pa.Table:
        self._tell("round-trip leg")
        return run_round_trip(*look_inside(self._frame))

    def collect(self) -> pa.Table:
        self._tell("distributed leg")
        self._collected = True
        return self._frame.collect()

    def explain_text(self) -> str:
        return self._frame.explain_text()


def run_round_trip(engine: Engine, query: LazyQuery) -> pa.Table:
    """The rows of a query whose plan is encoded and decoded once, and run as a whole in this process.

    It tells whether encoding lost something or sparkfusion is wrong.
    """
    planned, schema = engine.plan(query), query.schema
    if planned.plan is None:
        raise UserError(f"the query has no distributed plan: {planned.distribution.reason}")
    root = decode(planned.plan)
    if partition_count(root) > 1:
        root = coalesce(root)
    context = task_context(planned.options, Surroundings(config.machine_memory() // 2, prepare=engine.tables.prepare))
    decoded = ExecutionPlan.from_bytes(context, encode(root))
    frames = [frame.to_pyarrow() for frame in context.execute(decoded, 0)]
    frames = [frame for frame in frames if frame.num_rows]  # as everywhere: only rows settle a schema
    schema = decide_schema(schema, frames[0].schema) if frames else schema
    batches = [conform(frame, schema) for frame in frames]
    return pa.Table.from_batches(batches, schema=schema)
