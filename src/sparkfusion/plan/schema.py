"""The schema of a part of a plan, as DataFusion reports it. Nothing here encodes a schema by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import first_words
from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.map_types import restore_map_types
from sparkfusion.plan.void import void
from sparkfusion.plan.wire import PlanNode, copy_of, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce


@dataclass(frozen=True)
class DescribedSchema:
    """An Arrow schema and DataFusion's own encoding of it."""

    arrow: pa.Schema
    encoded: bytes
    computed: bytes = b""
    """Encoded expressions that a scan of its frames computes, if any: see `map_types`."""


def unique_names(names: list[str]) -> list[str]:
    """The names, each made different from those before it.

    >>> unique_names(["k", "v", "k"])
    ['k', 'v', 'k:2']
    """
    made: list[str] = []
    for index, name in enumerate(names):
        made.append(name if name not in names[:index] else f"{name}:{index}")
    return made


class SchemaProbe:
    """Asks DataFusion for the schema of plan parts. Used by one planning thread at a time; caches encoded schemas."""

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self._encoded: dict[pa.Schema, bytes] = {}
        one_row = decode(context.sql("select 1").execution_plan().to_bytes(context))
        self._one_row = next(copy_of(node) for node in walk(one_row) if kind(node) == "placeholder_row")

    def describe(self, node: PlanNode) -> DescribedSchema:
        """The node's schema, every field nullable.

        A left join of one row with the emptied node always gives a row, so its batch shows the schema even though
        the node itself gives none. Measured at about half a millisecond, without any I/O.
        """
        probe = pb.PlanNode()
        probe.nested_loop_join.left.CopyFrom(self._one_row)
        probe.nested_loop_join.right.CopyFrom(coalesce(void(node)))
        probe.nested_loop_join.join_type = pb.LEFT
        try:
            decoded = ExecutionPlan.from_bytes(self.context, encode(probe))
            schema: pa.Schema = next(self.context.execute(decoded, 0)).to_pyarrow().schema
            restored = restore_map_types(self.context, probe, schema)
            return DescribedSchema(schema, self.encode(schema), restored)
        except NotDistributableError:
            raise
        except Exception as error:
            raise NotDistributableError(f"a part of the plan cannot be decoded: {first_words(error)}") from error

    def check_plan(self, plan: bytes) -> None:
        """Raise `NotDistributableError` if tasks could not decode the plan, for example a function in it."""
        try:
            ExecutionPlan.from_bytes(self.context, plan)
        except Exception as error:
            raise NotDistributableError(f"the plan cannot be decoded: {first_words(error)}") from error

    def encode(self, schema: pa.Schema) -> bytes:
        """DataFusion's encoding of an Arrow schema: that of an empty in-memory table.

        Such a table refuses duplicate names, so the names are made unique for it and restored in the encoding.
        """
        if len(schema) == 0:
            return b""
        known = self._encoded.get(schema)
        if known is None:
            columns = [pa.array([], field.type) for field in schema]
            fields = [field.with_name(name) for field, name in zip(schema, unique_names(schema.names), strict=True)]
            empty = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            dataframe = self.context.create_dataframe([[empty]])
            table = decode(dataframe.execution_plan().to_bytes(self.context)).memory_scan
            encoded = pb.Schema.FromString(table.schema)
            for column, name in zip(encoded.columns, schema.names, strict=True):
                column.name = name
            known = encoded.SerializeToString()
            self._encoded[schema] = known
        return known
