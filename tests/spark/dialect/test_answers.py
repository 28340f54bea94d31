"""Queries in Spark's dialect, answered by Spark SQL and here: every answer is the same, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import sparkfusion
from sparkfusion import Session, SparkfusionError, UserError
from sparkfusion.dialect.refusals import NotInDialectError
from tests.runners import some_first
from tests.spark.dialect.expressions import GROUPS, Group
from tests.spark.dialect.failures import FAILURES
from tests.spark.dialect.refused import REFUSED
from tests.spark.dialect.same_answers import difference
from tests.spark.dialect.shapes import SHAPES
from tests.spark.dialect.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Queries over a few rows take most of their time in Spark's compiler."""


@pytest.fixture(scope="module")
def spark_with_tables(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    for table, rows in TABLES.items():
        spark.createDataFrame(rows).createOrReplaceTempView(table)
    yield spark
    for table in TABLES:
        spark.catalog.dropTempView(table)
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect(config={"sparkfusion.dialect": "spark"}) as opened:
        for table, rows in TABLES.items():
            opened.register_record_batches(table, [rows.to_batches()])
        yield opened


def differing(session: Session, query: str, spark: pa.Table) -> list[str]:
    """The query with what is different, or nothing."""
    try:
        found = difference(session, session.sql(query), spark)
    except SparkfusionError as error:
        found = f"{type(error).__name__}: {error}"
    return [] if found is None else [f"{query}\n    {found}"]


def _samples() -> Iterator[Any]:
    """Each group of whole queries in two parts: `make test` runs every sixth query."""
    for name, queries in SHAPES.items():
        yield pytest.param(queries[::6], id=name)
        others = [query for number, query in enumerate(queries) if number % 6]
        yield pytest.param(others, id=f"more {name}", marks=pytest.mark.long)


@pytest.mark.parametrize("group", some_first(GROUPS, ["arithmetic"]))
def test_expressions_have_sparks_values(spark_with_tables: SparkSession, session: Session, group: Group) -> None:
    """One query has them all. If it differs, each of them is asked for alone, to name those that are wrong."""
    columns = ", ".join(f"{text} as c{n}" for n, text in enumerate(group.expressions))
    rows = f"from {group.table} where {group.where}"
    theirs = spark_with_tables.sql(f"select id, {columns} {rows}").toArrow()
    if not differing(session, f"select id, {columns} {rows} order by id", theirs):
        return
    wrong: list[str] = []
    for n, text in enumerate(group.expressions):
        query = f"select id, {text} as c{n} {rows} order by id"
        wrong += differing(session, query, theirs.select(["id", f"c{n}"]))
    assert wrong, "each expression alone has Spark's values, but not all of them in one query"
    pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("queries", [*_samples()])
def test_queries_have_sparks_rows(spark_with_tables: SparkSession, session: Session, queries: Sequence[str]) -> None:
    wrong = [each for query in queries for each in differing(session, query, spark_with_tables.sql(query).toArrow())]
    assert not wrong, "\n".join(wrong)


def test_what_fails_in_spark_fails(session: Session) -> None:
    for query in FAILURES:
        with pytest.raises(UserError) as raised:
            session.sql(query).collect()
        assert not isinstance(raised.value, NotInDialectError), query


@pytest.mark.long
def test_spark_fails(spark_with_tables: SparkSession) -> None:
    from pyspark.errors import PySparkException

    for query in FAILURES:
        with pytest.raises(PySparkException):
            spark_with_tables.sql(query).toArrow()


def test_what_has_no_counterpart_is_refused_by_name(session: Session) -> None:
    for query, words in REFUSED:
        with pytest.raises(NotInDialectError) as raised:
            session.sql(query)
        assert words in raised.value.message, query
        assert raised.value.hint, query
