"""What a query needs of its feeds, read from DataFusion's optimized plan, for their providers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import datafusion
import pyarrow as pa
from datafusion import Expr, SessionContext
from datafusion.expr import Column, TableScan

from sparkfusion.feed.provider import ScanFilter, ScanRequest
from sparkfusion.session.sql_names import quote_name

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})


def requests(plan: datafusion.LogicalPlan, schemas: Mapping[str, pa.Schema]) -> dict[str, list[ScanRequest]]:
    """For each of these tables, what each of its scans in an optimized plan needs."""
    found: dict[str, list[ScanRequest]] = {name: [] for name in schemas}
    for scan in _scans(plan):
        name = scan.table_name()
        if name in found:
            found[name].append(_request(scan, schemas[name]))
    return found


def combine_requests(scans: Sequence[ScanRequest], expected: int) -> Sequence[ScanRequest]:
    """One request for each scan of a table in the physical plan, which does not distinguish them.

    If a query scans a table several times, only what holds for every scan is offered.
    """
    if len(scans) != expected or not scans:
        return [ScanRequest(())] * expected
    if expected == 1:
        return scans
    common = set(scans[0].filters).intersection(*(scan.filters for scan in scans[1:]))
    filters = tuple(each for each in scans[0].filters if each in common)
    columns = tuple(dict.fromkeys(name for scan in scans for name in scan.projection))

    def keeps(rows: Sequence[Mapping[str, Any]]) -> list[bool]:
        return [any(each) for each in zip(*(scan.keeps(rows) for scan in scans), strict=True)]

    return [ScanRequest(columns, filters, keeps)] * expected


def _scans(plan: datafusion.LogicalPlan) -> Iterator[TableScan]:
    variant = plan.to_variant()
    if isinstance(variant, TableScan):
        yield variant
    for child in plan.inputs():
        yield from _scans(child)


def _request(scan: TableScan, schema: pa.Schema) -> ScanRequest:
    conditions = [Expr(raw) for raw in scan.filters()]
    keeps = _Keeps(scan.table_name(), conditions, schema)
    columns = tuple(name for _, name in scan.projection())
    return ScanRequest(columns, tuple(_filter(each) for each in conditions), keeps, scan.fetch())


def _filter(condition: Expr) -> ScanFilter:
    text = condition.canonical_name()
    with suppress(Exception):  # an expression that DataFusion cannot take apart is offered as text
        operator, operands = condition.rex_call_operator(), condition.rex_call_operands()
        if operator in _COMPARISONS and len(operands) == 2:
            column, value = operands[0].to_variant(), operands[1]
            if isinstance(column, Column) and value.variant_name() == "Literal":
                found = value.python_value()
                found = found.as_py() if isinstance(found, pa.Scalar) else found
                return ScanFilter(text, column.name(), operator, found)
    return ScanFilter(text)


class _Keeps:
    """Lets DataFusion evaluate a query's conditions on values of some columns. If it cannot, the values are kept."""

    def __init__(self, table: str, conditions: Sequence[Expr], schema: pa.Schema) -> None:
        self._table = quote_name(table)
        self._conditions = conditions
        self._schema = schema

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> list[bool]:
        kept = [True] * len(rows)
        if not self._conditions:
            return kept
        context = SessionContext()
        try:
            context.register_record_batches(self._table, [[self._batch(rows)]])
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError):
            return kept
        for condition in self._conditions:
            try:
                (column,) = context.table(self._table).select(condition.alias("keeps")).to_pydict().values()
            except Exception:  # it needs a column whose values are not known
                continue
            kept = [before and bool(now) for before, now in zip(kept, column, strict=True)]
        return kept

    def _batch(self, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        names = [name for name in rows[0] if all(name in row for row in rows)]
        arrays = []
        for name in names:
            wanted = self._schema.field(name).type
            values = [row[name] for row in rows]
            texts = all(value is None or isinstance(value, str) for value in values)
            arrays.append(pa.array(values, pa.string()).cast(wanted) if texts else pa.array(values, wanted))
        return pa.RecordBatch.from_arrays(arrays, names)
