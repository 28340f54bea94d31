"""Logical plans of Spark as SQL text over their leaves. A node that has no text is refused by its name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sparkfusion.runner.spark.catalyst.expression_text import ExpressionText, NoTextError, column_name
from sparkfusion.runner.spark.catalyst.scala_objects import class_name, items
from sparkfusion.runner.spark.spark_catalog import quote

LEAVES = frozenset(
    {
        "DataSourceV2Relation", "ExternalRDD", "HiveTableRelation", "InMemoryRelation", "LocalRelation", "LogicalRDD",
        "LogicalRelation", "Range",
    }
)  # fmt: skip
PASSED = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"})
"""Nodes that change no answer."""

_ALIASES = frozenset({"SubqueryAlias", "View"})
_JOINS = {
    "Inner": "INNER", "Cross": "CROSS", "LeftOuter": "LEFT OUTER", "RightOuter": "RIGHT OUTER",
    "FullOuter": "FULL OUTER", "LeftSemi": "LEFT SEMI", "LeftAnti": "LEFT ANTI",
}  # fmt: skip
_NAMES = {
    "Deduplicate": "dropDuplicates of some columns, which keeps any row of each group",
    "Expand": "rollup, cube or grouping sets",
    "MapInArrow": "mapInArrow",
    "PythonMapInArrow": "mapInArrow",
    "MapInPandas": "mapInPandas",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "Pivot": "pivot",
    "Sample": "sample",
    "Tail": "tail",
}


@dataclass(frozen=True)
class PlanText:
    """A query. Its ORDER BY may name columns of the source.

    Attributes:
        names: the columns that it gives; `items` computes them.
        keys: the columns that its ORDER BY reads.
        is_open: its items are columns of its source. So a query above it can have other items, over the same source:
            a correlated condition is then in the query where it has to be, and not in a query inside of its FROM.
    """

    names: tuple[str, ...]
    items: str
    source: str
    where: str = ""
    group: str = ""
    order: str = ""
    keys: tuple[str, ...] = ()
    limit: str = ""
    is_open: bool = False

    @property
    def text(self) -> str:
        return f"SELECT {self.items}{self.source}{self.where}{self.group}{self.order}{self.limit}"


class PlanWriter:
    """Writes one plan. `leaves` are what the text selects from, by their names; their columns are named by their ids.

    Args:
        is_nested: every ORDER BY is where the plan has it, also in a subquery, as in Spark's own plans. Otherwise the
            order of a subquery moves to the outer query, as far as it decides the order of the rows: other engines
            keep only that.
    """

    def __init__(self, jvm: Any, prefix: str, *, is_nested: bool) -> None:
        self._expressions = ExpressionText(jvm, lambda plan: self._part(self._write(plan)))
        self._prefix = prefix
        self._is_nested = is_nested
        self._numbers = itertools.count()
        self._shared: dict[int, tuple[str, tuple[str, ...]]] = {}
        self._with: list[str] = []
        self.leaves: dict[str, Any] = {}

    def write(self, plan: Any) -> str:
        text = self._write(plan).text
        return f"WITH {', '.join(self._with)} {text}" if self._with else text

    def _write(self, plan: Any) -> PlanText:
        kind = class_name(plan)
        if kind in _ALIASES or kind in PASSED:
            return self._write(plan.child())
        if kind in LEAVES:
            return self._leaf(plan)
        method = self._METHODS.get(kind)
        if method is None:
            raise NoTextError(f"it has {_NAMES.get(kind, f'the operator {kind}')}, which is not translated")
        return method(self, plan)

    # ---- queries inside of queries

    def _part(self, below: PlanText) -> str:
        """The text of a query inside of another one, where the order matters only for a LIMIT."""
        return below.text if self._is_nested or below.limit else replace(below, order="").text

    def _from(self, plan: Any) -> str:
        """The rows of a plan as a table of a FROM clause."""
        return self._table(self._part(self._write(plan)))

    def _table(self, text: str) -> str:
        return f"({text}) AS t{next(self._numbers)}"

    def _over(self, text: str, names: tuple[str, ...]) -> PlanText:
        return PlanText(names, ", ".join(names), f" FROM {self._table(text)}", is_open=True)

    def _open(self, below: PlanText) -> PlanText:
        """The same rows as a query that can get other items. Their order stays, and so does a LIMIT."""
        if self._is_nested and (below.order or below.limit):
            return self._over(below.text, below.names)
        if below.is_open:
            return below
        hidden = [key for key in below.keys if key not in below.names]
        inner = replace(below, items=", ".join([below.items, *hidden]), order="", keys=(), limit="")
        return replace(self._over(inner.text, below.names), order=below.order, keys=below.keys, limit=below.limit)

    def _close(self, below: PlanText) -> PlanText:
        """The same, after its LIMIT, and in any order unless that is nested."""
        if below.limit or (self._is_nested and below.order):
            return self._over(below.text, below.names)
        return replace(self._open(below), order="", keys=())

    # ---- leaves

    def _leaf(self, plan: Any) -> PlanText:
        name = f"{self._prefix}_{len(self.leaves)}"
        self.leaves[name] = plan
        return _all(plan, f" FROM {name}")

    def _one_row(self, plan: Any) -> PlanText:
        return PlanText(("one",), "1 AS one", "")

    # ---- rows one by one

    def _project(self, plan: Any) -> PlanText:
        names, chosen = _columns(plan), self._items(plan.projectList())
        if not names:
            raise NoTextError("it has no columns")
        if class_name(plan.child()) == "OneRowRelation":
            return PlanText(names, chosen, "")
        return replace(self._open(self._write(plan.child())), names=names, items=chosen, is_open=False)

    def _items(self, named: Any) -> str:
        """Items of a SELECT. Spark may have the same column twice; a name can be there once only."""
        written = [self._expressions.write_item(each) for each in items(named)]
        return ", ".join(written if self._is_nested else dict.fromkeys(written))

    def _filter(self, plan: Any) -> PlanText:
        below = self._write(plan.child())
        below = self._close(below) if below.limit else self._open(below)
        condition = self._expressions.write(plan.condition())
        if below.where:
            condition = f"{below.where.removeprefix(' WHERE ')} AND {condition}"
        return replace(below, where=f" WHERE {condition}")

    def _generate(self, plan: Any) -> PlanText:
        made = [column_name(each) for each in items(plan.generatorOutput())]
        call = self._expressions.write(plan.generator())
        if not plan.qualifier().isDefined() and len(made) == 1 and not plan.outer():
            chosen = ", ".join([*_columns(plan.child()), f"{call} AS {made[0]}"])
            return PlanText(_columns(plan), chosen, f" FROM {self._from(plan.child())}")
        name = quote((str(plan.qualifier().get()),)) if plan.qualifier().isDefined() else f"g{next(self._numbers)}"
        view = f" LATERAL VIEW {'OUTER ' if plan.outer() else ''}{call} {name} AS {', '.join(made)}"
        return _all(plan, f" FROM {self._from(plan.child())}{view}")

    def _window(self, plan: Any) -> PlanText:
        chosen = ", ".join([*_columns(plan.child()), self._items(plan.windowExpressions())])
        return PlanText(_columns(plan), chosen, f" FROM {self._from(plan.child())}")

    # ---- groups

    def _aggregate(self, plan: Any) -> PlanText:
        names, chosen = _columns(plan), self._items(plan.aggregateExpressions())
        keys = ", ".join(self._expressions.write(each) for each in items(plan.groupingExpressions()))
        below = self._close(self._write(plan.child()))
        return replace(below, names=names, items=chosen, group=f" GROUP BY {keys}" if keys else "", is_open=False)

    def _distinct(self, plan: Any) -> PlanText:
        names = _columns(plan)
        return PlanText(names, f"DISTINCT {', '.join(names)}", f" FROM {self._from(plan.child())}")

    def _deduplicate(self, plan: Any) -> PlanText:
        if {column_name(each) for each in items(plan.keys())} != set(_columns(plan)):
            raise NoTextError(f"it has {_NAMES['Deduplicate']}")
        return self._distinct(plan)

    # ---- several inputs

    def _join(self, plan: Any) -> PlanText:
        kind = class_name(plan.joinType())
        if kind not in _JOINS:
            raise NoTextError(f"it has a join of type {plan.joinType().sql()}, which is not translated")
        left, right = self._from(plan.left()), self._from(plan.right())
        condition = plan.condition()
        on = f" ON {self._expressions.write(condition.get())}" if condition.isDefined() else ""
        join = f" {_JOINS[kind]} JOIN" if on or kind != "Inner" else ","
        return _all(plan, f" FROM {left}{join} {right}{on}")

    def _union(self, plan: Any) -> PlanText:
        return self._combine("UNION ALL", plan)

    def _intersect(self, plan: Any) -> PlanText:
        return self._combine("INTERSECT ALL" if plan.isAll() else "INTERSECT", plan)

    def _except(self, plan: Any) -> PlanText:
        return self._combine("EXCEPT ALL" if plan.isAll() else "EXCEPT", plan)

    def _combine(self, word: str, plan: Any) -> PlanText:
        names = _columns(plan)
        parts = [
            f"SELECT {rename_columns(_columns(each), names)} FROM {self._from(each)}" for each in items(plan.children())
        ]
        return self._over(f" {word} ".join(parts), names)

    # ---- order and number

    def _sort(self, plan: Any) -> PlanText:
        if not getattr(plan, "global")():
            raise NoTextError("it has sortWithinPartitions, and sparkfusion has other partitions")
        below, order = self._close(self._write(plan.child())), items(plan.order())
        keys = {column_name(each) for one in order for each in items(one.references().toSeq())}
        written = ", ".join(self._expressions.write(each) for each in order)
        return replace(below, order=f" ORDER BY {written}", keys=tuple(sorted(keys)))

    def _limit(self, plan: Any) -> PlanText:
        child = plan.child()
        child = child.child() if class_name(child) == "LocalLimit" else child
        return self._add_limit(child, f" LIMIT {self._expressions.write(plan.limitExpr())}")

    def _offset(self, plan: Any) -> PlanText:
        return self._add_limit(plan.child(), f" OFFSET {self._expressions.write(plan.offsetExpr())}")

    def _add_limit(self, child: Any, limit: str) -> PlanText:
        below = self._write(child)
        if below.limit.startswith(" OFFSET") and limit.startswith(" LIMIT"):
            return replace(below, limit=f"{limit}{below.limit}")
        return replace(self._over(below.text, below.names) if below.limit else below, limit=limit)

    # ---- WITH

    def _with_queries(self, plan: Any) -> PlanText:
        for shared in items(plan.cteDefs()):
            name = f"{self._prefix}_with_{len(self._shared)}"
            below = self._write(shared.child())
            self._shared[shared.id()] = name, below.names
            self._with.append(f"{name} AS ({self._part(below)})")
        return self._write(plan.plan())

    def _with_reference(self, plan: Any) -> PlanText:
        name, columns = self._shared[plan.cteId()]
        names = _columns(plan)
        return PlanText(names, rename_columns(columns, names), f" FROM {name}")

    _METHODS: ClassVar[Mapping[str, Callable[[PlanWriter, Any], PlanText]]] = {
        "Aggregate": _aggregate,
        "CTERelationRef": _with_reference,
        "Deduplicate": _deduplicate,
        "Distinct": _distinct,
        "Except": _except,
        "Filter": _filter,
        "Generate": _generate,
        "GlobalLimit": _limit,
        "Intersect": _intersect,
        "Join": _join,
        "Offset": _offset,
        "OneRowRelation": _one_row,
        "Project": _project,
        "Sort": _sort,
        "Union": _union,
        "Window": _window,
        "WithCTE": _with_queries,
    }


def _all(plan: Any, source: str) -> PlanText:
    """All columns of a plan, from a source that has them."""
    names = _columns(plan)
    return PlanText(names, ", ".join(names), source, is_open=True)


def _columns(plan: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(output_names(plan)))


def output_names(plan: Any) -> list[str]:
    """The names that the columns of a plan have in its text, in their order."""
    return [column_name(attribute) for attribute in items(plan.output())]


def rename_columns(columns: Sequence[str], names: Sequence[str]) -> str:
    """Items of a SELECT that give columns other names."""
    pairs = zip(columns, names, strict=True)
    return ", ".join(column if column == name else f"{column} AS {name}" for column, name in pairs)
