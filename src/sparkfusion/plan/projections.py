"""What filters, joins and projections do to the columns below them: which ones they pass on, in which order.

`column_lineage.py` follows columns down to scans, and `join_rows.py` follows their statistics up. What is known about a
column is of a type of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire import wire_pb2 as pb

NO_COLUMN = 2**32 - 1  # stands for a projection without columns in the wire format

Known = TypeVar("Known")


def project_columns(columns: list[Known], projection: Sequence[int]) -> list[Known]:
    """The columns that a filter or a join passes on; all of them if it has no projection."""
    return [columns[index] for index in projection if index != NO_COLUMN] if projection else columns


def compute_columns(columns: Sequence[Known], exprs: Iterable[pb.Expr], computed: Known) -> list[Known]:
    """The column of each expression; `computed` for those that are more than a column."""
    return [columns[expr.column.index] if is_column(expr) else computed for expr in exprs]


def projection_exprs(node: PlanNode) -> Sequence[pb.Expr]:
    """The expressions of a projection, which the schema of plans leaves encoded."""
    return pb.Projection.FromString(node.projection.SerializeToString()).expr


def is_column(expr: pb.Expr) -> bool:
    """Whether an expression is a plain column."""
    return bool(expr.WhichOneof("kind") == "column")
