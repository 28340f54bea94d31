"""Whether a text means the same as a plan. Spark itself decides that: it plans the text, and compares both plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sparkfusion.runner.spark.catalyst.expression_text import column_name
from sparkfusion.runner.spark.catalyst.plan_text import LEAVES, PASSED
from sparkfusion.runner.spark.catalyst.scala_objects import class_name, is_instance, items, scala_seq

_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
_SEQUENCE = "scala.collection.Seq"
_OPTION = "scala.Option"


def dataframe_of(session: SparkSession, plan: Any) -> DataFrame:
    """The DataFrame of a plan."""
    any_session: Any = session
    made = any_session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(any_session._jsparkSession, plan)
    return DataFrame(made, session)


def means_the_same(session: SparkSession, text: str, leaves: Mapping[str, Any], plan: Any) -> bool:
    """Whether Spark's optimizer makes the same plan of both, except for names. Nothing runs.

    Args:
        leaves: the leaves of `plan` that the text reads, by their names.
    """
    any_session: Any = session
    numbered = _Numbered(session, leaves)
    parsed = any_session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    plans: list[Any] = [dataframe_of(session, numbered.plan(each)) for each in (plan, parsed)]
    meant, written = (each._jdf.queryExecution().optimizedPlan() for each in plans)
    return bool(meant.sameResult(written))


class _Numbered:
    """Plans over stand-ins for their leaves. Columns of a stand-in have the same ids, and the names that the text has.

    The optimizer does not look into a stand-in, so it does the same with a plan and with its text.
    """

    def __init__(self, session: SparkSession, leaves: Mapping[str, Any]) -> None:
        any_session: Any = session
        self._session = session
        self._jvm = any_session._jvm
        self._unnamed: list[tuple[Any, Any]] = []
        self._named = {name: self._of(leaf) for name, leaf in leaves.items()}

    def _of(self, leaf: Any) -> Any:
        """The stand-in for a leaf. A leaf that is in the plan twice has one."""
        known = next((stand_in for each, stand_in in self._unnamed if each.equals(leaf)), None)
        if known is None:
            known = self._stand_in(leaf)
            self._unnamed.append((leaf, known))
        return known

    def _stand_in(self, leaf: Any) -> Any:
        """An RDD of no rows, of which Spark knows nothing but its columns. No other leaf has the same."""
        made: Any = self._session.createDataFrame(self._session.sparkContext.emptyRDD(), "none int")
        empty = made._jdf.queryExecution().analyzed()
        parts = _parts(self._jvm, empty)
        columns = [column.withName(column_name(column)) for column in items(leaf.output())]
        parts[0] = scala_seq(self._jvm, columns)
        return empty.makeCopy(parts)

    def plan(self, plan: Any) -> Any:
        """A plan over such leaves, without the nodes that the text leaves out; or one that was made of the text."""
        kind = class_name(plan)
        if kind in PASSED:
            return self.plan(plan.child())
        if kind in LEAVES:
            return self._of(plan)
        if kind == "UnresolvedRelation":
            name = str(plan.multipartIdentifier().last())
            return self._named.get(name, plan)
        children = [self.plan(child) for child in items(plan.children())]
        made = plan.withNewChildren(scala_seq(self._jvm, children)) if children else plan
        if kind != "UnresolvedWith" and not made.subqueries().size():
            return made
        parts = _parts(self._jvm, made)
        for index in range(len(parts)):
            parts[index] = self._part(parts[index])
        return made.makeCopy(parts)

    def _part(self, part: Any) -> Any:
        """A part of a node, with the plans inside of it changed in the same way."""
        if not hasattr(part, "getClass"):
            return part
        if is_instance(self._jvm, part, _SEQUENCE):
            return scala_seq(self._jvm, [self._part(each) for each in items(part)])
        if is_instance(self._jvm, part, _OPTION):
            return self._jvm.scala.Option.apply(self._part(part.get())) if part.isDefined() else part
        if class_name(part) == "Tuple3":  # a query of a WITH: its name, its plan, and more
            return self._jvm.scala.Tuple3(part._1(), self.plan(part._2()), part._3())
        if not is_instance(self._jvm, part, _EXPRESSION):
            return part
        if is_instance(self._jvm, part, _SUBQUERY):
            part = part.withNewPlan(self.plan(part.plan()))
        children = items(part.children())
        if not children:
            return part
        return part.withNewChildren(scala_seq(self._jvm, [self._part(child) for child in children]))


def _parts(jvm: Any, node: Any) -> Any:
    """The arguments that made a node, as an array of Java."""
    return node.productIterator().toArray(getattr(getattr(jvm, "scala.reflect.ClassTag$"), "MODULE$").AnyRef())
