"""The harness's middle leg: the plan made for distribution, through the wire format once, run whole in one process."""

from __future__ import annotations

import pyarrow as pa
from datafusion.plan import ExecutionPlan

from sparkfusion import config
from sparkfusion.errors import UserError
from sparkfusion.plan.wire import decode, encode, partition_count
from sparkfusion.plan.wire.build import coalesce
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.query import conform, settle_schema
from sparkfusion.worker.session import Surroundings, task_context


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
    schema = settle_schema(schema, frames[0].schema) if frames else schema
    batches = [conform(frame, schema) for frame in frames]
    return pa.Table.from_batches(batches, schema=schema)
