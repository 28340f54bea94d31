"""Statements that change a table: INSERT, UPDATE, DELETE and similar ones.

DataFusion 55 applies an UPDATE or a DELETE of an in-memory table while it makes the physical plan (datafusion#24656).
So such a statement is planned once, when it is run. Only the query inside it is planned at other times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError

_DML = re.compile(r"Dml: op=\[(.+?)\] table=\[(.+)\]", re.DOTALL)
_WORDS = {"Delete": "DELETE FROM", "MergeInto": "MERGE INTO", "Truncate": "TRUNCATE TABLE"}
_CONDITIONAL = ("UPDATE", "DELETE FROM")
_CARRY_CONDITION = {"Projection", "Filter", "SubqueryAlias", "TableScan"}
_NO_ROWS = "EmptyRelation"
INSERT_INTO = "INSERT INTO"
OVERWRITE = "INSERT OVERWRITE"


@dataclass(frozen=True)
class Change:
    """What a statement does to which table.

    Attributes:
        reads: the queries in it, which may be planned at any time; first the one whose rows it takes.
        into: the in-memory table, as SQL names it, that gets these rows when all of them are computed. None: DataFusion
            runs the statement.
    """

    operation: str
    table: str
    reads: tuple[datafusion.DataFrame, ...]
    into: str | None = None

    def __str__(self) -> str:
        return f"{self.operation} {self.table}"

    @property
    def reason(self) -> str:
        """Why it is not distributed."""
        return f"{self} changes a table, which is done in this process"


def find_change(context: SessionContext, dataframe: datafusion.DataFrame) -> Change | None:
    """The change that a statement makes; None if it changes no table."""
    plan = dataframe.logical_plan()
    found = _DML.fullmatch(plan.display().strip())
    if found is None:
        return None
    reads = [context.create_dataframe_from_logical_plan(plan.inputs()[0])]
    with suppress(Exception):  # a name that cannot be looked up: running the statement says so
        reads.append(context.table(found[2]))
    return Change(_WORDS.get(found[1], found[1].upper()), found[2], tuple(reads))


def changes_nothing(change: Change, dataframe: datafusion.DataFrame) -> bool:
    """Whether the condition of an UPDATE or DELETE is true for no row at all. Raises if DataFusion would lose the
    condition.

    DataFusion 55 looks for the condition in filters over the table. It does not find a condition that has become a join
    or an empty relation, and changes every row (datafusion#24654). A DELETE with a LIMIT also changes every row.
    """
    if change.operation not in _CONDITIONAL:
        return False
    nodes = set(_nodes_below(dataframe.optimized_logical_plan()))
    if not nodes <= _CARRY_CONDITION | {_NO_ROWS}:
        raise UserError(
            f"cannot run {change}: DataFusion ignores a subquery or LIMIT in its condition and would change every row",
            hint="list the values, as in WHERE k IN (1, 2); or make a table of the rows you want, with CREATE TABLE AS",
        )
    return _NO_ROWS in nodes


def explain_refusal(change: Change | None, error: SparkfusionError) -> SparkfusionError | None:
    """The error for a change that its table does not support; None if it is another error."""
    _, mark, words = error.message.rpartition("This feature is not implemented: ")
    if change is None or not mark:
        return None
    return UserError(f"cannot run {change}: {words}", hint=_what_instead(change))


@contextmanager
def explain_refusals(change: Change | None) -> Iterator[None]:
    try:
        yield
    except SparkfusionError as error:
        if (explained := explain_refusal(change, error)) is None:
            raise
        raise explained from error


def count_of_none() -> datafusion.DataFrame:
    """The result of a statement that had nothing to write: a count of 0."""
    return SessionContext().from_arrow(pa.table({"count": pa.array([0], pa.uint64())}))


def cannot_run_at_once() -> UserError:
    """The error if DataFusion ran the query of a statement by itself, and found a placeholder."""
    return UserError(
        "this statement runs on a single node, and a single node cannot read a feed or a Spark DataFrame",
        hint='make the table with session.sql("select …").write_table(name, mode="error")',
    )


def _what_instead(change: Change) -> str:
    if change.operation == "TRUNCATE TABLE":
        return f"DELETE FROM {change.table} removes every row of an in-memory table"
    if change.operation.startswith("INSERT"):
        return (
            "INSERT adds to in-memory tables and to directories of files; write other rows with COPY or write_parquet"
        )
    return (
        "UPDATE and DELETE change in-memory tables, by conditions without a subquery; "
        "for anything else, write the new rows with COPY or write_parquet"
    )


def _nodes_below(plan: datafusion.LogicalPlan) -> Iterator[str]:
    for child in plan.inputs():
        yield type(child.to_variant()).__name__
        yield from _nodes_below(child)
