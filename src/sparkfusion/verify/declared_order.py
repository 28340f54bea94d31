"""The declared order of a query: read from the single-node logical plan, checked on an answer.

The order is that of the outermost ORDER BY. Tied rows may be in any order, NaN is larger than every number, and NULLs
are where the plan puts them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import LogicalPlan, SessionConfig, SessionContext
from datafusion import expr as df_expr

from sparkfusion.verify.encode import plain
from sparkfusion.verify.rendering import render_value

_FREE_OF_ORDER = (df_expr.Limit, df_expr.Projection, df_expr.SubqueryAlias)
"""Nodes that pass the order of their input on."""


@dataclass(frozen=True)
class OrderKey:
    """One sort key: an output column by position, or an expression over output columns."""

    label: str
    ascending: bool = True
    nulls_first: bool = False
    column: int | None = None
    expression: df_expr.Expr | None = None

    def __str__(self) -> str:
        direction = "ASC" if self.ascending else "DESC"
        return f"{self.label} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True)
class DeclaredSortOrder:
    """The leading keys whose values are in the answer, and the keys after them, which cannot be checked."""

    keys: tuple[OrderKey, ...] = ()
    unchecked: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        if not self.unchecked:
            return ()
        return (f"order by {', '.join(self.unchecked)} not checked: not computable from the output columns",)


def declared_order(plan: LogicalPlan, answer: pa.Table) -> DeclaredSortOrder:
    """The order that `plan`, a logical plan before optimization, promises for its output.

    `answer` is a sample of the output (the single-node answer): an expression is a key only if it can be computed from
    it. Keys after one that cannot be computed say nothing, so checking stops at the first such key.
    """
    found = _find_sort(plan)
    if found is None:
        return DeclaredSortOrder()
    sort, outputs = found
    keys: list[OrderKey] = []
    sort_exprs = sort.sort_exprs()
    for position, sort_expr in enumerate(sort_exprs):
        key = _key(sort_expr, sort.schema().field_names(), outputs)
        if key is None or ranks(answer, key) is None:
            return DeclaredSortOrder(tuple(keys), tuple(str(e.expr().canonical_name()) for e in sort_exprs[position:]))
        keys.append(key)
    return DeclaredSortOrder(tuple(keys))


def _find_sort(plan: LogicalPlan) -> tuple[df_expr.Sort, list[int | None]] | None:
    """The outermost sort, and for each output column of `plan` its position in the sort's output, if it is there."""
    node = plan.to_variant()
    outputs: list[int | None] | None = None
    while isinstance(node, _FREE_OF_ORDER):
        plan = plan.inputs()[0]
        below = plan.to_variant()
        if isinstance(node, df_expr.Projection):
            if not isinstance(below, (df_expr.Sort, *_FREE_OF_ORDER)):
                return None
            step = [_position(raw, below.schema().field_names()) for raw in node.projections()]
            outputs = step if outputs is None else [None if at is None else step[at] for at in outputs]
        node = below
    if not isinstance(node, df_expr.Sort):
        return None
    return node, outputs if outputs is not None else list(range(len(node.schema().field_names())))


def as_expr(expression: object) -> df_expr.Expr:
    """The expression of a plan node as DataFusion's `Expr`. Plan nodes return bare expressions, which DataFrame methods
    refuse."""
    return expression if isinstance(expression, df_expr.Expr) else df_expr.Expr(expression)


def _position(raw: object, names: Sequence[str]) -> int | None:
    expression = as_expr(raw)
    kind = expression.variant_name()  # `to_variant` refuses some kinds, such as functions
    if kind == "Alias":
        return _position(expression.to_variant().expr(), names)
    name = expression.to_variant().qualified_name() if kind == "Column" else expression.schema_name()
    return names.index(name) if names.count(name) == 1 else None


def _key(sort_expr: df_expr.SortExpr, names: Sequence[str], outputs: Sequence[int | None]) -> OrderKey | None:
    expression = as_expr(sort_expr.expr())
    label = expression.canonical_name()
    ascending, nulls_first = sort_expr.ascending(), sort_expr.nulls_first()
    at = _position(expression, names)
    if at is not None:
        return OrderKey(label, ascending, nulls_first, column=outputs.index(at)) if at in outputs else None
    if list(outputs) != list(range(len(names))):
        return None  # the expression may read columns that a projection above the sort drops or renames
    return OrderKey(label, ascending, nulls_first, expression=expression)


def order_violation(table: pa.Table, keys: Sequence[OrderKey]) -> str | None:
    """A description of the first place where `table` is not sorted by `keys`; None if it is sorted."""
    columns = [found for key in keys if (found := ranks(table, key)) is not None]
    if not columns:
        return None
    rows = list(zip(*columns, strict=True))
    for row in range(1, len(rows)):
        if rows[row - 1] > rows[row]:
            declared = ", ".join(str(key) for key in keys)
            before, after = _show_row(table, keys, row - 1), _show_row(table, keys, row)
            return f"not in the order {declared}: row {row - 1} ({before}) comes before row {row} ({after})"
    return None


def ranks(table: pa.Table, key: OrderKey) -> list[int] | None:
    """For each row a number that sorts like the key, direction and nulls included; None if it cannot be computed."""
    values = _key_values(table, key)
    return None if values is None else rank_values(values, ascending=key.ascending, nulls_first=key.nulls_first)


def rank_values(values: pa.Array, *, ascending: bool, nulls_first: bool) -> list[int] | None:
    """Dense ranks of an array in DataFusion's sort order; None for types whose sort order we do not know (lists,
    structs)."""
    values = plain(values)
    if pa.types.is_null(values.type):
        return [0] * len(values)
    try:
        dense = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    except pa.ArrowNotImplementedError:
        return None
    # Arrow ranks NaN last among the numbers, which is DataFusion's "largest".
    top = len(values) + 1
    null_rank = -top if nulls_first else top
    sign = 1 if ascending else -1
    valid = values.is_valid().to_pylist()
    return [sign * rank if ok else null_rank for rank, ok in zip(dense.to_pylist(), valid, strict=True)]


def _key_values(table: pa.Table, key: OrderKey) -> pa.Array | None:
    if key.column is not None:
        column = table.column(key.column)
        return pa.concat_arrays([plain(c) for c in column.chunks]) if column.num_chunks else pa.array([], column.type)
    return _evaluate(table, key)


def _evaluate(table: pa.Table, key: OrderKey) -> pa.Array | None:
    """Evaluate a key expression over the answer. The answer has no table qualifiers, so each qualifier of the
    expression is tried."""
    if key.expression is None or len(set(table.column_names)) != table.num_columns or "random()" in key.label:
        return None
    for qualifier in (None, *_qualifiers(key.label)):
        try:
            # One batch, one partition: the rows come back in the order they went in.
            dataframe = SessionContext(SessionConfig().with_target_partitions(1)).from_arrow(table.combine_chunks())
            dataframe = dataframe if qualifier is None else dataframe.alias(qualifier)
            found = dataframe.select(key.expression.alias("key")).to_arrow_table().column("key")
        except Exception:  # DataFusion raises plain exceptions; such a key cannot be checked
            continue
        return pa.concat_arrays([plain(chunk) for chunk in found.chunks]) if found.num_chunks else None
    return None


def _qualifiers(label: str) -> list[str]:
    """Names before a dot in an expression's text, each once."""
    return list(dict.fromkeys(re.findall(r"([A-Za-z_]\w*)\.", label)))


def _show_row(table: pa.Table, keys: Sequence[OrderKey], row: int) -> str:
    return ", ".join(
        f"{key.label}={render_value(table.column(key.column), row)}" if key.column is not None else key.label
        for key in keys
    )
