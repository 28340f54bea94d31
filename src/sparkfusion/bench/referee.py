"""Compare an engine's answer with DataFusion's, by `sparkfusion.verify`, after the times are measured.

sparkfusion's answers are compared as they are. Other engines have other types for the same numbers. In their answers,
decimals and floats are compared as floats, to the digits of the least precise engine, and everything else exactly. If a
sort order does not say where NULL is, NULL is the smallest value for Spark and Sail, and the largest for DataFusion.
Below a LIMIT, that decides which rows are returned. So their answers are compared with DataFusion's answer under their
own rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa
from datafusion import DataFrame, SessionConfig, SessionContext

from sparkfusion.verify import CompareOptions, compare_tables
from sparkfusion.verify.judge import Judge, Verdict

CLOSE = CompareOptions(relative_tolerance=1e-4, absolute_tolerance=1e-5)
"""Tolerances for other engines: DataFusion's average of decimals has six digits after the point, DuckDB's is a
double."""

Nulls = Literal["largest", "smallest"]
"""The place of NULL in a sort order that does not name it."""

_NULLS: Mapping[Nulls, str] = {"largest": "nulls_max", "smallest": "nulls_min"}


@dataclass(frozen=True)
class Ruling:
    """The result of a comparison. `equal` is None if it cannot be decided; the note says why, or what differs."""

    equal: bool | None
    note: str = ""


class Referee:
    """Compares answers to the queries of one suite. It runs queries itself only if the plain comparison fails."""

    def __init__(self, tables: Mapping[str, Path]) -> None:
        self._tables = tables

    def rule_own(self, sql: str, reference: pa.Table, answer: pa.Table) -> Ruling:
        """Compare an answer of sparkfusion: types, values, and the sort order of the query."""
        return self._rule(lambda: self._judge_own(sql, reference, answer))

    def rule_other(self, sql: str, reference: pa.Table, answer: pa.Table, nulls: Nulls = "largest") -> Ruling:
        """Compare an answer of another engine, which sorts NULL to this place."""
        return self._rule(lambda: self._judge(nulls, sql, reference, answer))

    @staticmethod
    def _rule(judge: Callable[[], Ruling]) -> Ruling:
        try:
            return judge()
        except Exception as error:  # an error of the comparison, not of the engine
            return Ruling(None, f"not comparable: {error}")

    def _judge_own(self, sql: str, reference: pa.Table, answer: pa.Table) -> Ruling:
        dataframe, context = self._plan(sql, "largest")
        return _ruling(Judge(reference, dataframe.logical_plan(), context, CompareOptions()).judge(answer))

    def _judge(self, nulls: Nulls, sql: str, reference: pa.Table, answer: pa.Table) -> Ruling:
        try:
            answer = cast_to(answer, reference.schema)
        except (ValueError, pa.ArrowNotImplementedError) as error:
            return Ruling(False, f"its values are of other types: {error}")
        dataframe, context = self._plan(sql, nulls)
        if nulls != "largest" and not is_close(reference, answer):
            reference = dataframe.to_arrow_table()
        return _ruling(Judge(reference, dataframe.logical_plan(), context, CLOSE, view=comparable).judge(answer))

    def _plan(self, sql: str, nulls: Nulls) -> tuple[DataFrame, SessionContext]:
        context = self._context(nulls)
        return context.sql(sql), context

    @cache  # noqa: B019  one referee a suite
    def _context(self, nulls: Nulls) -> SessionContext:
        context = SessionContext(SessionConfig({"datafusion.sql_parser.default_null_ordering": _NULLS[nulls]}))
        for name, directory in self._tables.items():
            context.register_parquet(name, str(directory))
        return context


def _ruling(verdict: Verdict) -> Ruling:
    if verdict.right:
        return Ruling(True)
    return Ruling(None, verdict.undecided) if verdict.undecided else Ruling(False, verdict.comparison.describe())


def is_close(reference: pa.Table, answer: pa.Table) -> bool:
    """Whether both have the same rows, in any order and with any types."""
    answer = cast_to(answer, reference.schema)
    return compare_tables(comparable(reference), comparable(answer), CLOSE).equal


def cast_to(answer: pa.Table, schema: pa.Schema) -> pa.Table:
    """An engine's rows under DataFusion's names and types. Raises `ValueError` if a value does not fit."""
    if answer.num_columns != len(schema):
        raise ValueError(f"expected {len(schema)} columns, got {answer.num_columns}")
    columns = []
    for column, field in zip(answer.columns, schema, strict=True):
        number = pa.types.is_decimal(field.type) or pa.types.is_floating(field.type)
        columns.append(column.cast(pa.float64() if number else field.type))
    return pa.table(columns, names=schema.names)


def comparable(table: pa.Table) -> pa.Table:
    """The same rows with decimals as floats, and without types that differ only in storage, such as dictionaries."""
    return pa.table([column.cast(_plain(column.type)) for column in table.columns], names=table.schema.names)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    return kind
