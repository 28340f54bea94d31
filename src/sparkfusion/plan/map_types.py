"""Restore the types of map columns, which frames do not keep.

A map names its entries, its keys and its values: `key_value` in Parquet files, `entries` in Arrow's own libraries. Two
maps that differ only in these names are different types to DataFusion, and pyarrow, which writes the frames, drops the
names. So we ask DataFusion for the types of a plan as text (`arrow_typeof`), let it parse and encode that text
(`arrow_cast`), and cast the map columns of a scan of frames to these types.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionContext, col, functions
from datafusion.plan import ExecutionPlan

from sparkfusion.plan.gate import LOST, NotDistributableError
from sparkfusion.plan.wire import PlanNode, decode, encode
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import projection


def restore_map_types(context: SessionContext, one_row: PlanNode, schema: pa.Schema) -> bytes:
    """The expressions of a scan of frames that restore the column types of the plan that wrote them. Empty if there are
    no maps.

    Args:
        one_row: a plan with these columns that returns one row.
    """
    columns = _map_columns(schema)
    if not columns:
        return b""
    named = [(f"c{index}", _column(schema.names[index], index)) for index in columns]
    types = _type_words(context, projection(one_row, named), [name for name, _ in named])
    return _casts(schema.names, dict(zip(columns, _encode_types(context, types), strict=True)))


def restore_declared_maps(declared: pb.Schema, written: pa.Schema) -> bytes:
    """The same for rows that pyarrow wrote with the schema `written`, if DataFusion's encoded schema is known."""
    wanted = {index: declared.columns[index].arrow_type for index in _map_columns(written)}
    return _casts([column.name for column in declared.columns], wanted) if wanted else b""


def _casts(names: Sequence[str], wanted: dict[int, bytes]) -> bytes:
    """Encoded expressions for every column: a cast for those with a wanted type."""
    computed = pb.ScanExprs()
    for index, name in enumerate(names):
        expr = _column(name, index)
        if index in wanted:
            cast = pb.ColumnCast(cast=pb.Cast(expr=expr, arrow_type=wanted[index]))
            expr = pb.Expr.FromString(cast.SerializeToString())
        computed.exprs.add(alias=name, expr=expr)
    return computed.SerializeToString()


def _map_columns(schema: pa.Schema) -> list[int]:
    return [index for index, field in enumerate(schema) if _holds_map(field.type)]


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _holds_map(kind.value_type)
    return any(_holds_map(kind.field(index).type) for index in range(kind.num_fields))


def _column(name: str, index: int) -> pb.Expr:
    return pb.Expr(column=pb.Column(name=name, index=index))


def _type_words(context: SessionContext, one_row: PlanNode, names: Sequence[str]) -> list[str]:
    """The result of `arrow_typeof` for every column. The calls are planned over an empty table with the same names."""
    empty = pa.RecordBatch.from_pydict({name: pa.array([], pa.int64()) for name in names})
    calls = (functions.arrow_typeof(col(name)) for name in names)
    probe = decode(context.create_dataframe([[empty]]).select(*calls).execution_plan().to_bytes(context))
    probe.projection.input.CopyFrom(one_row)
    row = next(context.execute(ExecutionPlan.from_bytes(context, encode(probe)), 0)).to_pyarrow()
    return [str(column[0]) for column in row.columns]


def _encode_types(context: SessionContext, types: Sequence[str]) -> list[bytes]:
    """DataFusion's encoding of types that `arrow_typeof` printed. The metadata of nested fields is lost."""
    for each in types:
        if "metadata: {" in each:
            raise NotDistributableError(f"a map column has nested fields with metadata, which {LOST}: {each}")
    quoted = (each.replace("'", "''") for each in types)
    casts = ", ".join(f"arrow_cast(null, '{each}') as c{index}" for index, each in enumerate(quoted))
    plan = context.sql(f"select {casts} where false").execution_plan()
    return [column.arrow_type for column in pb.Schema.FromString(decode(plan.to_bytes(context)).empty.schema).columns]
