"""A function's name means in a task what it meant in the query, also where several functions have that name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import col, functions, lit, udaf, udf, udwf
from datafusion.functions import spark as spark_functions

from sparkfusion import DataFrame, Session
from tests.behaviour.parts import TOTAL, assert_distributed_like_single_node
from tests.behaviour.test_functions import Doubled, Total

pytestmark = pytest.mark.any_width

NULL_WHERE_K_IS_0 = "nullif(cast(k as varchar), '0')"
JOINED = f"concat(cast(v as varchar), {NULL_WHERE_K_IS_0})"  # Spark's is null where an argument is
WITH_K = sum(1 for v in range(TOTAL) if v % 7)


def one_value(frame: DataFrame) -> Any:
    """The only value of a frame that is distributed and answers like single-node DataFusion."""
    (row,) = assert_distributed_like_single_node(frame).to_pylist()
    (value,) = row.values()
    return value


def refused(frame: DataFrame) -> str:
    distribution = frame.distribution()
    assert distribution.reason is not None, "the query is distributed"
    return distribution.reason


def test_spark_functions_are_sparks_in_tasks(session: Session) -> None:
    count = f"select count({JOINED}) as n from t where v >= 0"
    assert one_value(session.sql(count)) == TOTAL
    session.enable_spark_functions()
    assert one_value(session.sql(count)) == WITH_K


def test_frame_keeps_the_functions_it_was_made_with(session: Session) -> None:
    before = session.sql(f"select count({JOINED}) as n from t where v >= 0")
    session.enable_spark_functions()
    assert one_value(before) == TOTAL


def test_spark_aggregates_are_merged_across_tasks(session: Session) -> None:
    session.enable_spark_functions()
    assert_distributed_like_single_node(
        session.sql("select k, avg(v) as a, try_sum(v) as s, avg(cast(part as decimal(10,2))) as d from t group by k")
    )
    found = session.sql("select k, collect_list(v) as l from t group by k").to_pylist()
    assert sorted(v for row in found for v in row["l"]) == list(range(TOTAL))


def test_spark_functions_in_every_place(session: Session) -> None:
    session.enable_spark_functions()
    assert_distributed_like_single_node(
        session.sql(
            "select substring(cast(a.v as varchar), 0, 2) as s, count(*) as n, max(hex(a.v)) as h"
            " from t a join t b on pmod(a.v, 5) = pmod(b.v, 5) and a.v = b.v"
            " where round(a.v / 2.5) > 3 and exists (select 1 from t c where length(cast(c.v as varchar)) = a.k)"
            " group by 1 having avg(b.v) > 1 order by abs(n), s"
        )
    )


def test_spark_expressions_need_no_enabling(session: Session) -> None:
    joined = spark_functions.concat(col("v").cast(pa.string()), functions.nullif(col("k"), lit(0)).cast(pa.string()))
    frame = session.table("t").filter(col("v") >= lit(0)).aggregate([], [functions.count(joined).alias("n")])
    assert one_value(frame) == WITH_K
    assert_distributed_like_single_node(session.table("t").select(spark_functions.hex(col("v")).alias("h")))


def test_own_and_spark_functions_of_other_names_go_together(session: Session) -> None:
    session.enable_spark_functions()
    frame = session.sql(
        f"select extract(year from date '2020-01-01' + cast(k as int)) as y, count({JOINED}) as n from t group by 1"
    )
    assert "date_part" in frame.to_datafusion().logical_plan().display_indent()  # DataFusion's, whatever is enabled
    assert sum(assert_distributed_like_single_node(frame)["n"].to_pylist()) == WITH_K


def test_own_and_spark_function_of_one_name_are_refused(session: Session) -> None:
    text = col("v").cast(pa.string())
    nothing = functions.nullif(text, text)
    frame = session.table("t").select(
        functions.concat(text, nothing).alias("own"), spark_functions.concat(text, nothing).alias("sparks")
    )
    assert (
        refused(frame)
        == "the query calls DataFusion's 'concat' and Spark's, which have the same name in an encoded plan"
    )
    assert all(row["own"] is not None and row["sparks"] is None for row in frame.to_pylist())


def test_alias_of_a_spark_function_does_not_hide_an_own_one(session: Session) -> None:
    """Spark's `length` is called `character_length` too, which is the name of DataFusion's."""
    text = col("v").cast(pa.string())
    frame = session.table("t").select(
        functions.character_length(text).alias("own"), spark_functions.length(text).alias("sparks")
    )
    assert "'character_length'" in refused(frame)


def test_shuffled_lists_are_never_computed_twice(session: Session) -> None:
    graph = session.table("t").select(spark_functions.shuffle(functions.make_array(col("v")))).distribution().graph
    assert graph is not None
    assert not graph.repeatable


@pytest.mark.parametrize("analyze", [False, True])
def test_explain_knows_spark_functions(session: Session, analyze: bool) -> None:
    session.enable_spark_functions()
    assert "hex(" in session.sql("select hex(k) as h, count(*) from t group by 1").explain_text(analyze=analyze)


def test_python_functions_with_names_of_own_ones(session: Session) -> None:
    session.register_udf(udf(lambda v: pc.add(v, 1), [pa.int64()], pa.int64(), "immutable", "abs"))
    session.register_udaf(udaf(Total, [pa.int64()], pa.int64(), [pa.int64()], "immutable", "avg"))
    session.register_udwf(udwf(Doubled, [pa.int64()], pa.int64(), "immutable", "lead"))
    found = assert_distributed_like_single_node(session.sql("select k, avg(abs(v)) as s from t group by k"))
    assert sum(found["s"].to_pylist()) == sum(range(TOTAL)) + TOTAL
    found = assert_distributed_like_single_node(session.sql("select k, lead(v) over (partition by k) as d from t"))
    assert sorted(found["d"].to_pylist()) == [2 * v for v in range(TOTAL)]


def test_python_function_replaces_a_spark_one(session: Session) -> None:
    session.enable_spark_functions()
    session.register_udf(udf(lambda v: pc.add(v, 1), [pa.int64()], pa.int64(), "immutable", "abs"))
    assert one_value(session.sql("select max(abs(v)) as m from t where v >= 0")) == TOTAL


def test_own_function_that_was_deregistered_is_gone_from_queries_only(session: Session) -> None:
    before = session.sql("select max(abs(v)) as m from t where v >= 0")
    session.deregister_udf("abs")
    assert one_value(before) == TOTAL - 1
