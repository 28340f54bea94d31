"""Queries that fail while they run, in a place where no optimisation may skip the failing rows.

Where an error is raised depends on what is evaluated: a pruned row cannot divide by zero. So the failing expression
stands in the SELECT list, or in an aggregate, over one whole table: no join, no filter, no LIMIT.
"""

from __future__ import annotations

from tests.fuzz.kinds import Family
from tests.fuzz.scope import Pen, table_source


def failing(pen: Pen) -> str:
    """The text of a statement that fails on most data."""
    pen.note("run-time error")
    source = table_source(pen.pick(pen.tables), pen.fresh("a"))
    whole, text = pen.pick(source.of(Family.INT)), pen.pick(source.of(Family.TEXT))
    expression = pen.pick(
        (
            f"10 / {whole.ref}",
            f"10 % {whole.ref}",
            f"CAST({text.ref} AS INT)",
            f"CAST({text.ref} AS DATE)",
            f"CAST({whole.ref} AS DECIMAL(3, 2)) / ({whole.ref} - {whole.ref})",
        )
    )
    other = table_source(pen.pick(pen.tables), pen.fresh("a"))
    return pen.pick(
        (
            f"SELECT {source.key[0]}, {expression} AS c FROM {source.sql}",
            f"SELECT {text.ref}, max({expression}) AS c FROM {source.sql} GROUP BY {text.ref}",
            f"SELECT count(DISTINCT {expression}) AS c FROM {source.sql}",
            f"SELECT {source.key[0]}, (SELECT {other.key[0]} FROM {other.sql}) AS c FROM {source.sql}",
        )
    )
