"""Functions behind their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext, udf

from sparkfusion.plan.functions import register_spark_functions, spark_functions
from sparkfusion.plan.gate import NotDistributableError


def in_sql(sql: str) -> tuple[str, ...]:
    context = SessionContext()
    context.enable_spark_functions()
    context.from_pydict({"x": [1, 2]}, name="t")
    context.register_udf(udf(lambda x: x, [pa.int64()], pa.int64(), "immutable", name="same"))
    return spark_functions(context.sql(sql))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select lower('A'), row_number() over (), sum(1)", ()),
        ("select same(1)", ()),
        ("select concat('a', x), lower('A') from t", ("concat",)),
        ("select char_length(x) from t", ("length",)),
        ("select avg(x) over (order by x) from t", ("avg",)),
        ("select x from t where x in (select bit_count(x) from t)", ("bit_count",)),
        ("select 'ScalarUDF { inner: SparkHex'", ("hex",)),  # one too many costs nothing
    ],
)
def test_names_that_mean_functions_of_spark(sql: str, names: tuple[str, ...]) -> None:
    assert in_sql(sql) == names


@dataclass(frozen=True)
class Described:
    """A plan of which only the description is looked at."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def logical_plan(self) -> Any:
        return self

    optimized_logical_plan = logical_plan


def test_functions_of_extensions_are_refused() -> None:
    """Under whatever name: a task would find none, or DataFusion's own."""
    plan = Described('ScalarFunction { func: ScalarUDF { inner: ForeignScalarUDF { name: "abs", aliases: [] } } }')
    with pytest.raises(NotDistributableError, match="'abs' comes from a compiled extension"):
        spark_functions(cast(DataFrame, plan))


@pytest.mark.parametrize("call", ["arrow_metadata(x)", "with_metadata(x, 'unit', 'ms')", "arrow_field(x)"])
def test_functions_of_metadata_are_refused(call: str) -> None:
    with pytest.raises(NotDistributableError, match="column metadata, which is lost"):
        in_sql(f"select {call} from t")


def test_subqueries_that_hide_functions_are_refused() -> None:
    with pytest.raises(NotDistributableError, match="subquery"):
        spark_functions(cast(DataFrame, Described("Filter { predicate: <subquery> }")))


def test_only_the_named_functions_are_registered() -> None:
    context = SessionContext()
    register_spark_functions(context, ["concat", "avg"])
    row = context.sql("select concat('a', null) as c, avg(x) as a, abs(-1) as b from (values (1)) t(x)")
    assert row.to_pylist() == [{"c": None, "a": 1.0, "b": 1}]
    assert "hex" not in context.udfs()
