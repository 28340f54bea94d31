"""Values of partition columns as plans carry them."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from datafusion import SessionContext, lit

from sparkfusion.errors import UserError
from sparkfusion.plan.wire import decode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb


@lru_cache(maxsize=1024)
def encoded_literal(value: str | bytes | None, type: pa.DataType) -> bytes:
    """A value as plans carry it; DataFusion encodes it."""
    try:
        typed = pa.scalar(value, pa.binary() if isinstance(value, bytes) else pa.string()).cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(f"the partition value {value!r} is no {type}: {error}") from error
    context = SessionContext()
    frame = context.from_pydict({"x": [1]}).select(lit(typed).alias("value"))
    root = decode(frame.execution_plan().to_bytes(context))
    for node in walk(root):
        if kind(node) == "projection":
            (expr,) = pb.Projection.FromString(node.projection.SerializeToString()).expr
            return bytes(expr.literal)
    raise UserError(f"a value of type {type} cannot be a partition value")
