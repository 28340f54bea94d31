"""Expressions of Catalyst as SQL. Columns are named by their ids, so that no two columns have the same name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from sparkfusion.runner.spark.catalyst.scala_objects import class_name, is_instance, items, scala_seq

_WRITTEN_AS_CALLED = "org.apache.spark.sql.catalyst.expressions.InheritAnalysisRules"
_SUBQUERIES = {"ScalarSubquery": "({})", "Exists": "EXISTS ({})"}
_USERS_FUNCTIONS = frozenset({"PythonUDAF", "PythonUDF", "ScalaAggregator", "ScalaUDAF", "ScalaUDF", "HiveSimpleUDF"})
_WITHOUT_TEXT = {"AtLeastNNonNulls": "dropna", "PivotFirst": "pivot"}
_MARK = "sparkfusion_part_{}_"

WriteQuery = Callable[[Any], str]
"""The text of a plan inside of an expression."""


class NoTextError(Exception):
    """Why a plan has no text, in words that follow "because"."""


class ExpressionText:
    """Writes expressions of one plan. `write_query` writes the subqueries inside of them."""

    def __init__(self, jvm: Any, write_query: WriteQuery) -> None:
        self._jvm = jvm
        self._write_query = write_query
        self._numbers = itertools.count()

    def write(self, expression: Any) -> str:
        """The text of an expression: Catalyst's own, except for names, subqueries and calls that Catalyst rewrites."""
        parts: dict[str, str] = {}
        text = str(self._prepare(expression, parts).sql())
        for mark, part in parts.items():
            text = text.replace(mark, part)
        return text

    def write_item(self, named: Any) -> str:
        """An item of a SELECT, under the name of its column."""
        name = column_name(named)
        if class_name(named) == "AttributeReference":
            return name
        return f"{self.write(named.child())} AS {name}"

    def _prepare(self, node: Any, parts: dict[str, str]) -> Any:
        """The same expression with our names of columns, and marks for the parts that we write."""
        kind = class_name(node)
        if kind == "OuterReference":
            return self._prepare(node.e(), parts)
        if kind == "AttributeReference":
            return self._attribute(column_name(node))
        if kind in _SUBQUERIES:
            return self._mark(_SUBQUERIES[kind].format(self._write_query(node.plan())), parts)
        if kind == "InSubquery":
            values = ", ".join(self.write(value) for value in items(node.values()))
            return self._mark(f"(({values}) IN ({self._write_query(node.query().plan())}))", parts)
        if kind in _WITHOUT_TEXT:
            raise NoTextError(f"it has {_WITHOUT_TEXT[kind]}, which is not translated")
        if kind in _USERS_FUNCTIONS:
            raise NoTextError(f"it calls the function {node.toString().split('(')[0]!r}, which is the user's own")
        if kind == "Between":
            value, low, high = (self.write(each) for each in items(node.parameters()))
            return self._mark(f"({value} BETWEEN {low} AND {high})", parts)
        if kind == "CreateNamedStruct":  # Catalyst would name the fields like the columns
            return self._call("named_struct", node.children(), parts)
        if is_instance(self._jvm, node, _WRITTEN_AS_CALLED):
            return self._call(node.prettyName(), node.parameters(), parts)
        children = items(node.children())
        if not children:
            return node
        return node.withNewChildren(scala_seq(self._jvm, [self._prepare(child, parts) for child in children]))

    def _call(self, name: str, arguments: Any, parts: dict[str, str]) -> Any:
        return self._mark(f"{name}({', '.join(self.write(each) for each in items(arguments))})", parts)

    def _mark(self, text: str, parts: dict[str, str]) -> Any:
        mark = _MARK.format(next(self._numbers))
        parts[mark] = text
        return self._attribute(mark)

    def _attribute(self, name: str) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quoted(name)


def column_name(attribute: Any) -> str:
    """Our name of a column; Catalyst gives every column an id."""
    return f"c{attribute.exprId().id()}"
