"""Versions of tables, for catalogs that keep them: AS OF in Spark's dialect, and as a name in DataFusion's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session, UserError
from tests.conftest import Connect
from tests.spark.catalog_rows import how, rows_of
from tests.spark.versioned_catalog import add_versioned_catalog

pytestmark = pytest.mark.long

ORDERS = "sf_versions.shop.orders"


@pytest.fixture(scope="module")
def session(connect_shared: Connect, spark: SparkSession) -> Session:
    add_versioned_catalog(spark, "sf_versions")
    return connect_shared({"sparkfusion.bytes_per_partition": 1})


@pytest.mark.parametrize(
    ("query", "versions"),
    [
        ("select id, version from {t}", {2}),
        ("select id, version from {t} version as of 1", {1}),
        ("select o.id, orders.version from {t} VERSION AS OF '1' o join {t} on o.id = orders.id", {2}),
        ("select id, version from {t} timestamp as of '2019-01-01 00:00:00' as x where x.id > 0", {1}),
        ("select n.id, o.version from {t} n join {t} for version as of 1 o on o.id = n.id - 1", {1}),
    ],
)
def test_as_of_means_what_it_means_to_spark(
    session: Session, spark: SparkSession, query: str, versions: set[int]
) -> None:
    text = query.format(t=ORDERS)
    answer = session.sql(text, dialect="spark").collect()
    assert rows_of(answer) == rows_of(spark.sql(text).toArrow())
    assert set(answer["version"].to_pylist()) == versions


def test_a_version_is_a_name_in_datafusions_dialect(session: Session) -> None:
    old = 'sf_versions.shop."orders VERSION AS OF 1"'
    query = session.sql(f"select o.version as now, v.version as before from {ORDERS} o join {old} v on o.id = v.id")
    assert query.collect().to_pylist() == [{"now": 2, "before": 1}] * 3
    shown = query.explain_text()
    assert f"table {ORDERS}: through Spark, because its catalog has a reader of its own" in shown
    assert f"table {ORDERS} VERSION AS OF 1: through Spark, because its catalog has a reader of its own" in shown
    assert "its catalog has a reader of its own" in how(session, ORDERS)


def test_what_has_no_versions_is_refused(connect: Connect, spark: SparkSession, session: Session) -> None:
    with pytest.raises(UserError, match=f"Spark refuses to read table '{ORDERS} VERSION AS OF 9': (.|\n)*no version 9"):
        session.sql(f"select * from {ORDERS} version as of 9", dialect="spark")
    spark.range(3).write.saveAsTable("sf_unversioned")
    try:
        with pytest.raises(UserError, match=r"'sf_unversioned VERSION AS OF 1': (.|\n)*[Tt]ime travel"):
            session.sql("select * from sf_unversioned version as of 1", dialect="spark")
    finally:
        spark.sql("drop table sf_unversioned")
    own = connect({})
    own.sql("create table mine as select 1 as x")
    with pytest.raises(UserError, match="'mine' is a table of the session, which has no versions"):
        own.sql("select * from mine version as of 1", dialect="spark")
    with pytest.raises(UserError, match="'nowhere VERSION AS OF 1' not found"):
        own.sql("select * from nowhere version as of 1", dialect="spark")
    with pytest.raises(UserError, match="c is a query of WITH, which has no versions"):
        own.sql("with c as (select 1) select * from c version as of 1", dialect="spark")
    with pytest.raises(UserError, match="a version must be a number or a plain string"):
        own.sql("select * from t timestamp as of current_timestamp()", dialect="spark")
    with pytest.raises(UserError, match="a time must be a string"):
        own.sql("select * from t timestamp as of 1577836800", dialect="spark")
