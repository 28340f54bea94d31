"""Which functions a plan calls. Encoded plans have only the names of compiled functions.

The rules are in docs/adr/0018-a-name-means-the-same-function-in-a-task.md.

`concat`, for example, is a function of DataFusion and also a different one of Spark (`datafusion.functions.spark`, or
any query after `enable_spark_functions`). Tasks know DataFusion's own functions. The Spark functions that a plan calls
are registered in its tasks by name. A query is not distributed if its tasks would not find one of its functions, or
would confuse it with another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import datafusion
from datafusion import SessionContext

from sparkfusion.plan.gate import HALF_FLOAT, LOST, NotDistributableError, check_literals

_FUNCTION = re.compile(r'\b(?:Scalar|Aggregate|Window)UDF \{ inner: (\w+)(?: \{ name: "([^"\\]*)")?')
_OF_METADATA = frozenset({"arrow_field", "arrow_metadata", "with_metadata"})
_PYTHON = "PythonFunction"  # their definitions are in the plan
_SUBQUERY = "<subquery>"  # DataFusion prints this in place of a subquery


class _Catalogue(NamedTuple):
    """The functions of a context.

    Attributes:
        called: every name a function can be called by, aliases too, and its name in encoded plans.
        made_by: for each implementation, its names in encoded plans. One that implements a family of functions has
            several.
        aggregates: the names of those that are aggregates.
    """

    context: SessionContext
    called: dict[str, str]
    made_by: dict[str, set[str]]
    aggregates: frozenset[str]


def spark_functions(dataframe: datafusion.DataFrame) -> tuple[str, ...]:
    """The Spark functions that a query calls, by their names in its encoded plan.

    Raises `NotDistributableError` if a task would call another function of the same name, or find none, and for
    literals and metadata that are lost. Only DataFusion's printed plan distinguishes functions of the same name and
    shows types (0.6 ms for a query of TPC-H).
    """
    text = repr(dataframe.logical_plan())
    if _SUBQUERY in text or HALF_FLOAT in text:
        optimized = repr(dataframe.optimized_logical_plan())
        check_literals(optimized)
        return _of_spark(optimized)
    found = _of_spark(text)
    return _of_spark(repr(dataframe.optimized_logical_plan())) if found else found  # the optimizer may add functions


def register_spark_functions(context: SessionContext, names: Iterable[str]) -> None:
    """Register Spark's functions of these names in a context. Raises KeyError for an unknown name."""
    spark = _spark()
    for name in names:
        if name in spark.aggregates:
            context.register_udaf(spark.context.udaf(name))
        else:
            context.register_udf(spark.context.udf(name))


def _of_spark(text: str) -> tuple[str, ...]:
    if _SUBQUERY in text:
        raise NotDistributableError(
            "the plan still contains a subquery, and sparkfusion cannot see which functions it calls"
        )
    own, spark = _own(), _spark()
    called = dict(_FUNCTION.findall(text))
    for implementation, name in called.items():
        known = implementation in own.made_by or implementation in spark.made_by
        if not known and not implementation.startswith(_PYTHON):
            raise NotDistributableError(
                f"function {name or implementation!r} comes from a compiled extension, which tasks do not have"
            )
    wanted = {name for each in called for name in spark.made_by.get(each, ())}
    taken = {alias for alias, name in spark.called.items() if name in wanted}
    for name in sorted(name for each in called for name in own.made_by.get(each, ())):
        if name in _OF_METADATA:
            raise NotDistributableError(f"{name} reads column metadata, which {LOST}")
        if name in taken:
            raise NotDistributableError(
                f"the query calls DataFusion's {name!r} and Spark's, which have the same name in an encoded plan"
            )
    return tuple(sorted(wanted))


@lru_cache(maxsize=1)
def _own() -> _Catalogue:
    return _catalogue(SessionContext(), {})


@lru_cache(maxsize=1)
def _spark() -> _Catalogue:
    """Spark's functions only. A context that has them also has DataFusion's other functions."""
    context = SessionContext()
    context.enable_spark_functions()
    return _catalogue(context, _own().made_by)


def _catalogue(context: SessionContext, without: Iterable[str]) -> _Catalogue:
    called: dict[str, str] = {}
    made_by: dict[str, set[str]] = {}
    for alias, function in _functions(context):
        shown = _FUNCTION.search(repr(function().alias("shown").to_variant()))
        assert shown is not None
        if shown[1] not in without:
            called[alias] = function.name
            made_by.setdefault(shown[1], set()).add(function.name)
    return _Catalogue(context, called, made_by, frozenset(called.values()) & frozenset(context.udafs()))


def _functions(context: SessionContext) -> Iterator[tuple[str, Any]]:
    for name in context.udfs():
        yield name, context.udf(name)
    for name in context.udafs():
        yield name, context.udaf(name)
    for name in context.udwfs():
        yield name, context.udwf(name)
