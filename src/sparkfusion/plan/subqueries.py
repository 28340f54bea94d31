"""Scalar subqueries, read from the text of a logical plan: the Python API does not show the plans inside expressions.

For distribution they are planned as joins (docs/traps.md#scalar-subqueries). A subquery with several rows is an error,
but a join does not notice it. So only subqueries that cannot have more than one row may pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARK = re.compile(r"((?:NOT )?(?:IN|EXISTS) )?\(<subquery>\)")
_ROW_KEEPING = ("Projection:", "Sort:", "SubqueryAlias:", "Filter:")
_ONE_ROW = re.compile(r"Aggregate: groupBy=\[\[\]\]|Limit: skip=\d+, fetch=[01]$|EmptyRelation")


def has_unproven_scalar_subquery(lines: Sequence[str]) -> bool:
    """Whether the plan has a scalar subquery that may give more than one row."""
    for number, line in enumerate(lines):
        scalar = [mark[1] is None for mark in _MARK.finditer(line)]
        if not any(scalar):
            continue
        blocks = _subquery_blocks(lines, number)
        if len(blocks) != len(scalar):  # the text does not show which is which
            return True
        if any(is_scalar and not _gives_one_row(lines, at) for is_scalar, at in zip(scalar, blocks, strict=True)):
            return True
    return False


def _subquery_blocks(lines: Sequence[str], node: int) -> list[int]:
    """Where the subqueries of a node begin: the lines one level below it that say so."""
    depth = _depth(lines[node])
    found = []
    for number in range(node + 1, len(lines)):
        if _depth(lines[number]) <= depth:
            break
        if _depth(lines[number]) == depth + 1 and lines[number].strip() == "Subquery:":
            found.append(number + 1)
    return found


def _gives_one_row(lines: Sequence[str], number: int) -> bool:
    while number < len(lines):
        text = lines[number].strip()
        if _ONE_ROW.match(text):
            return True
        if not text.startswith(_ROW_KEEPING):
            return False
        number += 1
    return False


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // 2
