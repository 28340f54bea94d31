"""Small plans and orders, made without a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.ids import SourceFile, TaskKey
from sparkfusion.plan.sources import exchange_source
from sparkfusion.plan.wire import encode
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.worker.task import TaskInput, TaskOrder


def plan_of(sql: str, **tables: pa.Table) -> bytes:
    context = SessionContext()
    for name, table in tables.items():
        context.register_record_batches(name, [table.to_batches()])
    return context.sql(sql).execution_plan().to_bytes(context)


def order_of_plan(plan: bytes, key: TaskKey, **changes: Any) -> TaskOrder:
    return replace(TaskOrder(key, plan, here="here"), **changes)


def order_of_sql(sql: str, key: TaskKey, here: str, *, tables: Mapping[str, pa.Table] | None = None) -> TaskOrder:
    return order_of_plan(plan_of(sql, **(tables or {})), key, here=here)


def reading(key: TaskKey, here: str, files: list[SourceFile]) -> TaskOrder:
    """A task that scans frames with one column `x`, as exchange 1."""
    context = SessionContext()
    context.register_record_batches("t", [pa.table({"x": pa.array([1], pa.int64())}).to_batches()])
    encoded = context.sql("select x from t").execution_plan().to_bytes(context)
    schema = pb.PlanNode.FromString(encoded).memory_scan.schema
    plan = encode(exchange_source(1, 1, schema, 1))
    return order_of_plan(plan, key, inputs=(TaskInput(1, 0, tuple(files)),), here=here)
