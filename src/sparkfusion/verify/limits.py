"""LIMIT without a total order: the rows that an answer must have, and those that it may choose from.

Used only when the plain comparison failed. The rows that the limit chooses from are computed on a single node, from the
logical plan without that limit. An answer may choose among the rows that are tied on the sort keys at a border of the
limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

import pyarrow as pa
from datafusion import DataFrame, LogicalPlan, SessionContext, col
from datafusion import expr as df_expr

from sparkfusion.verify.compare import Comparison, Difference, match_rows, row_differences
from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.declared_order import as_expr, rank_values
from sparkfusion.verify.encode import encode_column, plain
from sparkfusion.verify.pairing import Closeness

_PASSES_ROWS = (df_expr.Projection, df_expr.SubqueryAlias, df_expr.Sort)
"""Nodes that return each input row once, so that a limit below them decides which rows the plan returns."""
_KEY = "__sort_key_{}"


@dataclass(frozen=True)
class LimitNode:
    """A LIMIT in a logical plan, with the nodes above it up to the top of the plan (outermost first)."""

    plan: LogicalPlan
    above: tuple[LogicalPlan, ...]

    @property
    def input(self) -> LogicalPlan:
        return self.plan.inputs()[0]


@dataclass(frozen=True)
class LimitChoice:
    """The rows that a limit allows: `must` rows are in every right answer, the others are chosen from `may`."""

    must: pa.Table
    may: pa.Table

    def is_open(self, options: CompareOptions) -> bool:
        """Whether two right answers can differ. They cannot if all rows to choose from are equal."""
        if self.may.num_rows < 2 or self.may.num_columns == 0:
            return False
        first = _take(self.may, [0] * self.may.num_rows)
        same = match_rows(first, self.may, options)
        return bool(same.missing or same.extra)


def outermost_limit(plan: LogicalPlan) -> LimitNode | None:
    """The limit that decides which rows the plan returns, if there are only projections and sorts above it."""
    above: list[LogicalPlan] = []
    while isinstance(plan.to_variant(), _PASSES_ROWS):
        above.append(plan)
        plan = plan.inputs()[0]
    return LimitNode(plan, tuple(above)) if isinstance(plan.to_variant(), df_expr.Limit) else None


def inner_limits(plan: LogicalPlan) -> Iterator[LimitNode]:
    """All limits below `plan`, except those inside subquery expressions, which plan nodes do not show."""
    for child in plan.inputs():
        if isinstance(child.to_variant(), df_expr.Limit):
            yield LimitNode(child, ())
        yield from inner_limits(child)


def limit_choice(limit: LimitNode, context: SessionContext, options: CompareOptions) -> LimitChoice:
    """Run the limit's input on a single node and divide its rows into `must` and `may`. Raises ValueError if that
    cannot be decided."""
    skip, fetch = _bounds(limit.plan.to_variant())
    dataframe, keys = _without_limit(limit, context)
    table = dataframe.to_arrow_table()
    width = table.num_columns - len(keys)
    rows = table.select(list(range(width)))
    order, group_starts = _tie_groups(table, width, keys, options)
    stop = table.num_rows if fetch is None else min(skip + fetch, table.num_rows)
    must: list[int] = []
    may: list[int] = []
    for start, end in zip(group_starts, [*group_starts[1:], table.num_rows], strict=True):
        if skip <= start and end <= stop:
            must += order[start:end]
        elif start < stop and end > skip:
            may += order[start:end]
    return LimitChoice(_take(rows, must), _take(rows, may))


def compare_limited(choice: LimitChoice, answer: pa.Table, expected_rows: int, options: CompareOptions) -> Comparison:
    """Compare an answer with a choice: it must have the right number of rows, every `must` row, and other rows only
    from `may`."""
    if answer.num_rows != expected_rows:
        text = f"expected {expected_rows} rows, got {answer.num_rows}"
        return Comparison((Difference("row count", text),))
    if answer.num_columns == 0:
        return Comparison()
    found = match_rows(choice.must, answer, options)
    rest = _take(answer, [row for row, count in found.extra for _ in range(count)])
    outside = match_rows(choice.may, rest, options)
    differences = row_differences("missing row", choice.must, found.missing, options)
    differences += row_differences("extra row", rest, outside.extra, options)
    note = f"{rest.num_rows} rows were taken from {choice.may.num_rows} with equal sort keys at the LIMIT"
    return Comparison(
        tuple(differences),
        found.missing_count,
        outside.extra_count,
        found.tolerated + outside.tolerated,
        max(found.worst, outside.worst),
        (note,),
    )


def _bounds(node: df_expr.Limit) -> tuple[int, int | None]:
    skip, fetch = _number(node.skip()), _number(node.fetch())
    return skip or 0, fetch


def _number(raw: object) -> int | None:
    if raw is None:
        return None
    expression = as_expr(raw)
    if expression.variant_name() != "Literal":
        raise ValueError(f"LIMIT {expression.canonical_name()} is not a plain number")
    value = expression.python_value()
    return None if value is None else int(value)


def _without_limit(limit: LimitNode, context: SessionContext) -> tuple[DataFrame, list[df_expr.SortExpr]]:
    """The rows that the limit chooses from, with the sort keys it chooses by as extra columns at the end."""
    below: list[LogicalPlan] = []
    plan = limit.input
    while isinstance(plan.to_variant(), (df_expr.Projection, df_expr.SubqueryAlias)):
        below.append(plan)
        plan = plan.inputs()[0]
    variant = plan.to_variant()
    if isinstance(variant, df_expr.Sort):
        keys = variant.sort_exprs()
    else:
        keys, plan, below = [], limit.input, []
    dataframe = context.create_dataframe_from_logical_plan(plan)
    names = [_KEY.format(i) for i in range(len(keys))]
    for name, key in zip(names, keys, strict=True):
        dataframe = dataframe.with_column(name, as_expr(key.expr()))
    for node in reversed([*limit.above, *below]):
        variant = node.to_variant()
        if isinstance(variant, df_expr.Projection):
            dataframe = dataframe.select(
                *(as_expr(raw) for raw in variant.projections()), *(col(name) for name in names)
            )
        elif isinstance(variant, df_expr.SubqueryAlias):
            dataframe = dataframe.alias(variant.alias())
    return dataframe, keys


def _tie_groups(
    table: pa.Table, width: int, keys: Sequence[df_expr.SortExpr], options: CompareOptions
) -> tuple[list[int], list[int]]:
    """Rows in sort order, and where each group of tied rows starts. Without keys all rows are tied."""
    count = table.num_rows
    if count == 0:
        return [], []
    row_keys: list[tuple[int, ...]] = [()] * count
    settled = [False] * count
    for position, key in enumerate(keys):
        values = pa.concat_arrays([plain(chunk) for chunk in table.column(width + position).chunks])
        ranks = rank_values(values, ascending=key.ascending(), nulls_first=key.nulls_first())
        if ranks is None:
            raise ValueError(f"no order known for the sort key {key.expr().canonical_name()} of type {values.type}")
        merged, noisy = _merge_close(ranks, values, options)
        for row in range(count):
            if not settled[row]:
                row_keys[row] += (merged[row],)
                settled[row] = noisy[row]
    order = sorted(range(count), key=row_keys.__getitem__)
    starts = [0] + [at for at in range(1, count) if row_keys[order[at]] != row_keys[order[at - 1]]]
    return order, starts


def _merge_close(ranks: list[int], values: pa.Array, options: CompareOptions) -> tuple[list[int], list[bool]]:
    """Give neighbouring floats within tolerance the same rank, and return which rows changed.

    Where the last digits of floats decided the order, later sort keys had no effect, so such rows count as tied.
    """
    floats = encode_column([values], options).floats
    noisy = [False] * len(ranks)
    if floats is None:
        return ranks, noisy
    close = Closeness((floats.relative_tolerance,), options.absolute_tolerance)
    finite = [value is not None and isfinite(value) for value in values.to_pylist()]
    merged = list(ranks)
    by_rank = sorted((row for row in range(len(ranks)) if finite[row]), key=ranks.__getitem__)
    for previous, row in pairwise(by_rank):
        if close(floats.values[row], floats.values[previous]):
            merged[row] = merged[previous]
    exact: dict[int, set[int]] = {}
    for row, rank in enumerate(ranks):
        exact.setdefault(merged[row], set()).add(rank)
    return merged, [len(exact[rank]) > 1 for rank in merged]


def _take(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """Rows by position."""
    if table.num_columns == 0 or not rows:
        return table.slice(0, len(rows))
    try:
        return table.take(pa.array(rows, pa.int64()))
    except pa.ArrowNotImplementedError:  # string and binary views
        return pa.concat_tables([table.slice(row, 1) for row in rows]).combine_chunks()
    except pa.ArrowInvalid:  # dictionaries with NULL, which Arrow does not unify
        return pa.concat_tables([table.slice(row, 1) for row in rows])
