"""`accelerate`: queries of Spark get Spark's answer, with its schema, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

import sparkfusion
from sparkfusion import UserError
from sparkfusion.bench.tpc import TPCH
from tests.behaviour.parts import DISTRIBUTED
from tests.runners import ALL_ON_SPARK, SPLIT
from tests.spark.catalog_rows import database
from tests.spark.conf import settings

pytestmark = pytest.mark.long  # another way in, whose translation the unit tests check

CONFIG = {**DISTRIBUTED, **SPLIT, **ALL_ON_SPARK}
SALES = "id", "id % 7 as shop", "if(id % 5 = 0, null, id * 1.5d) as price", "cast(id % 3 as string) as kind"
TPCH_QUERIES = {
    2: "a minimum for each part",
    3: "joins and a limit",
    4: "exists",
    13: "an outer join",
    15: "a maximum of a view",
    20: "in, twice",
    21: "not exists",
}
"""Queries of TPC-H that are least alike."""


@pytest.fixture(scope="module")
def sales(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Rows in Parquet files, also as the table `sf_fast.sales` of the catalog, and as the view `sales`."""
    home = tmp_path_factory.mktemp("home")
    with database(spark, "sf_fast", home):
        spark.range(0, 500, 1, 3).selectExpr(*SALES).write.saveAsTable("sf_fast.sales")
        found = spark.read.parquet(str(home / "sales"))
        found.createOrReplaceTempView("sales")
        yield found
        spark.catalog.dropTempView("sales")


def shops(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(0, "north", [1, 2]), (1, None, []), (9, "west", None)], "shop int, name string, a array<int>"
    )


def assert_like_spark(query: DataFrame | str, theirs: DataFrame, **options: Any) -> str:
    """The query is answered here, with Spark's schema and rows. Returns how."""
    with sparkfusion.accelerate(query, config=CONFIG, **options) as found:
        assert found.answered, found.reason
        assert _loose(found.df.schema) == _loose(theirs.schema)
        compared = found.compare()
        assert compared.equal, compared.describe()
        return found.how


def _loose(schema: StructType) -> list[tuple[object, ...]]:
    """What a schema says, except for NULLs inside of columns."""
    return [
        (field.name, field.dataType.simpleString(), field.nullable or not _is_plain(field), field.metadata)
        for field in schema
    ]


def _is_plain(field: Any) -> bool:
    return not any(word in field.dataType.simpleString() for word in ("array", "map", "struct"))


# ---- DataFrames

SUBQUERIES = """
    select shop, (select max(price) from sales) m from sales a
    where exists (select 1 from sales b where b.id = a.shop and b.id < 4)
    and kind in (select kind from sales where id < 2)
"""
WITH = """
    with c as (select shop, sum(id) s from sales group by shop)
    select shop, s from c where s > 10
"""


def add_windows(t: DataFrame) -> DataFrame:
    by_price = Window.partitionBy("shop").orderBy(F.desc("price"), "id")
    return t.withColumns({"r": F.row_number().over(by_price), "s": F.sum("id").over(by_price)}).where("r < 3")


SHAPES: dict[str, Callable[[DataFrame, SparkSession], DataFrame]] = {
    "filter and compute": lambda t, _: t.where("price > 10").select("id", (F.col("price") * 2).alias("Double Price")),
    "aggregate": lambda t, _: t.groupBy("shop").agg(F.sum("price"), F.avg("id"), F.countDistinct("kind"), F.count("*")),
    "join": lambda t, s: t.join(shops(s), "shop", "left").groupBy("name").agg(F.max("price").alias("most")),
    "same names": lambda t, s: (
        t.alias("a").join(shops(s).alias("b"), F.expr("a.shop = b.shop")).select("a.shop", "b.shop", "a.shop")
    ),
    "self-join": lambda t, _: t.alias("a").join(t.alias("b"), F.col("a.id") == F.col("b.shop")).select("a.id", "b.id"),
    "semi-join": lambda t, s: t.join(shops(s), "shop", "left_semi").select("id"),
    "full join": lambda t, s: s.range(3).join(s.range(1, 5), "id", "full"),
    "window": lambda t, _: add_windows(t),
    "sort": lambda t, _: t.orderBy(F.desc("price"), "id").select("id").where("id > 5"),
    "sort and limit": lambda t, _: t.orderBy(F.desc_nulls_first("price"), "id").limit(7).select("kind", "id"),
    "offset": lambda t, _: t.orderBy("id").offset(3).limit(2),
    "limit below": lambda t, _: t.orderBy("id").limit(10).where("kind = '1'").groupBy("kind").count(),
    "union": lambda t, s: t.select("id").union(s.range(3)).distinct(),
    "intersect": lambda t, s: t.select("shop").intersect(s.range(3)),
    "drop duplicates": lambda t, _: t.select("shop", "kind").dropDuplicates(),
    "range": lambda _, s: s.range(100).withColumn("x", F.col("id") % 7).groupBy("x").count(),
    "functions": lambda t, _: t.select(
        F.upper("kind"), F.when(F.col("id") > 5, "x").otherwise("y").alias("w"), F.expr("nvl(price, 0)"),
        F.expr("id between 3 and 9"), F.col("id").cast("string"), F.lit(1.5),
        F.expr("date_add(date'2020-02-28', cast(shop as int))"),
    ),
    "structs": lambda t, _: t.select(F.struct("id", "kind").alias("s"), F.struct("shop").alias("t")),
    "explode": lambda _, s: shops(s).select("shop", F.explode("a").alias("each")),
    "fill": lambda t, _: t.fillna(0).na.replace(["1"], ["one"]),
    "partitions and hints": lambda t, s: t.repartition(3).join(F.broadcast(shops(s)), "shop").select("id", "name"),
    "subquery": lambda _, s: s.sql(SUBQUERIES),
    "with": lambda _, s: s.sql(WITH),
    "a table of the catalog": lambda _, s: s.table("sf_fast.sales").groupBy("kind").agg(F.min("price")),
    "empty": lambda t, _: t.where("id < 0").groupBy().count(),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_dataframe_has_sparks_answer(sales: DataFrame, spark: SparkSession, name: str) -> None:
    theirs = SHAPES[name](sales, spark)
    assert_like_spark(theirs, theirs)


def test_files_are_read_by_datafusion(sales: DataFrame, spark: SparkSession) -> None:
    for query, shown in (
        (sales, "/sales: 3 Parquet files"),
        (spark.table("sf_fast.sales"), "sf_fast.sales: 3 Parquet"),
    ):
        with sparkfusion.accelerate(query.groupBy("kind").count(), config=CONFIG) as found:
            assert f"{shown}" in found.explain_text()
            assert "read by DataFusion" in found.explain_text()


def test_rows_in_sparks_cache_are_read_from_there(spark: SparkSession, tmp_path: Path) -> None:
    """Spark answers with the cached rows, so we do: they may be older than the files."""
    home = str(tmp_path / "t")
    spark.range(10).write.parquet(home)
    kept = spark.read.parquet(home).cache()
    assert kept.count() == 10
    (next(Path(home).glob("*.parquet"))).unlink()
    theirs = kept.groupBy().sum("id")
    assert_like_spark(theirs, theirs)
    assert kept.is_cached
    kept.unpersist(blocking=True)


def udf_of(t: DataFrame, _: SparkSession) -> DataFrame:
    shout = F.udf(lambda text: f"{text}!", "string")
    return t.select(shout("kind").alias("u"))


def upper(text):  # type: ignore[no-untyped-def]  # Spark would look for pandas in the hints
    """A function of a user that has the name of one of Spark's."""
    return f"{text}?"


REFUSED: dict[str, tuple[Callable[[DataFrame, SparkSession], DataFrame], str]] = {
    "a Python function": (udf_of, "it calls the function '<lambda>'"),
    "a Python function with the name of one of Spark's": (
        lambda t, _: t.select(F.udf(upper, "string")("kind")),
        "it calls the function 'upper'",
    ),
    "mapInArrow": (lambda t, _: t.mapInArrow(lambda batches: batches, t.schema), "mapInArrow"),
    "rollup": (lambda t, _: t.rollup("kind").count(), "rollup, cube or grouping sets"),
    "dropDuplicates of a column": (lambda t, _: t.dropDuplicates(["kind"]), "keeps any row of each group"),
    "sample": (lambda t, _: t.sample(0.5), "sample"),
    "sorted partitions": (lambda t, _: t.sortWithinPartitions("id"), "sortWithinPartitions"),
    "a function of Spark only": (lambda t, _: t.select(F.initcap("kind").alias("i")), "initcap"),
    "dropna": (lambda t, _: t.dropna(), "dropna"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_answered_says_why(sales: DataFrame, spark: SparkSession, name: str) -> None:
    make, words = REFUSED[name]
    theirs = make(sales, spark)
    with sparkfusion.accelerate(theirs, config=CONFIG) as found:
        assert not found.answered
        assert words in (found.reason or "")
        assert found.how == f"by Spark, because {found.reason}"
        assert found.df is theirs
        assert "not accelerated, because" in found.explain_text(width=80)
        with pytest.raises(UserError, match="not accelerated"):
            found.measure()


def test_a_catalog_that_is_switched_off_is_the_reason(sales: DataFrame) -> None:
    off = {"sparkfusion.spark_catalog": "off"}
    for theirs in (sales, "select * from sales"):
        with sparkfusion.accelerate(theirs, config=off) as found:
            assert found.reason == "sparkfusion.spark_catalog is off, so tables of Spark are not found"


def test_settings_that_change_answers_are_refused(sales: DataFrame, spark: SparkSession) -> None:
    for given, words in (
        ({"ansi__enabled": "false"}, "spark.sql.ansi.enabled is false"),
        ({"session__timeZone": "Europe/Prague"}, "spark.sql.session.timeZone is Europe/Prague"),
        ({"caseSensitive": "true"}, "spark.sql.caseSensitive is true"),
    ):
        with settings(spark, **given), sparkfusion.accelerate(sales) as found:
            assert words in (found.reason or "")


def test_a_dataframe_that_was_made_without_ansi_mode_is_refused(sales: DataFrame, spark: SparkSession) -> None:
    """It divides by zero without an error, as the text of it would not do now."""
    with settings(spark, ansi__enabled="false"):
        theirs = sales.select((F.col("id") / F.col("shop")).alias("q"))
        assert theirs.schema  # analysed
    with sparkfusion.accelerate(theirs) as found:
        assert "Spark plans its SQL text in another way" in (found.reason or "")


# ---- texts


@pytest.mark.usefixtures("sales")
def test_a_text_has_sparks_answer(spark: SparkSession) -> None:
    for text in (
        "select shop, sum(price), count(*) as n from sf_fast.sales group by shop order by 1",
        "select kind, shop, count(*) from sales group by rollup(kind, shop)",
    ):
        assert_like_spark(text, spark.sql(text), spark=spark)


@pytest.mark.usefixtures("sales")
def test_a_text_that_is_not_answered_says_why(spark: SparkSession) -> None:
    with sparkfusion.accelerate("select initcap(kind) as i from sales", spark=spark) as found:
        assert "initcap" in (found.reason or "")
        assert found.df.count() == 500


def test_what_is_no_query_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(UserError, match="'drop table x': it is not a query"):
        sparkfusion.accelerate("drop table x", spark=spark)
    with pytest.raises(UserError, match=r"cannot accelerate a builtins\.int"):
        sparkfusion.accelerate(5)  # type: ignore[arg-type]


# ---- what comes back


def test_the_answer_outlives_its_session(sales: DataFrame) -> None:
    with sparkfusion.accelerate(sales.groupBy("shop").count(), config=CONFIG) as found:
        answer = found.df
    assert answer.count() == 7


def test_explain_shows_both_plans(sales: DataFrame) -> None:
    with sparkfusion.accelerate(sales.groupBy("shop").count(), config=CONFIG) as found:
        wide = found.explain_text(width=200).splitlines()
        assert wide[0].split() == ["Spark", "│", "sparkfusion"]
        assert max(map(len, wide)) <= 200
        assert any("Physical Plan" in line and "distributed: 2 stages" in line for line in wide)
        narrow = found.explain_text(width=100)
        assert narrow.index("── Spark ──") < narrow.index("HashAggregate") < narrow.index("── sparkfusion ──")


def test_measure_runs_both_in_turn(sales: DataFrame) -> None:
    with sparkfusion.accelerate(sales.groupBy("shop").count(), config=CONFIG) as found:
        measured = found.measure(rounds=2)
        assert len(measured.spark) == len(measured.sparkfusion) == 2
        assert measured.speed_up == min(measured.spark) / min(measured.sparkfusion)
        with pytest.raises(UserError, match="0 rounds"):
            found.measure(rounds=0)


# ---- TPC-H


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    files = tmp_path_factory.mktemp("tpch")
    TPCH.generate(files, 0.01, files=2)
    for table in TPCH.tables(files):
        spark.read.parquet(str(files / table)).createOrReplaceTempView(table)
    yield
    for table in TPCH.tables(files):
        spark.catalog.dropTempView(table)


@pytest.mark.usefixtures("tpch")
@pytest.mark.parametrize("number", TPCH_QUERIES)
def test_tpch_as_dataframes(spark: SparkSession, number: int) -> None:
    theirs = spark.sql(TPCH.queries()[number])
    assert assert_like_spark(theirs, theirs).startswith("distributed")
