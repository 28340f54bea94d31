"""Queries in Spark's dialect on every runner. That their answers are Spark's is tested in tests/spark/dialect."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf

from sparkfusion import Session, UserError
from tests.behaviour.parts import DISTRIBUTED, TOTAL, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect
from tests.runners import LOCAL

pytestmark = pytest.mark.sample("spark-local")
NO_TASKS = "what is read before there is a task"


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    opened = connect(DISTRIBUTED | {"sparkfusion.dialect": "spark"})
    opened.register_parquet("t", str(write_parts(tmp_path)))
    return opened


def test_query_is_distributed_with_sparks_meaning(session: Session) -> None:
    frame = session.sql(
        """
        select K div 2 as half, count(*) as n, sum(v) as total, avg(v / 2) as mean, max(hex(v)) as most,
               max(add_months(date '2024-01-31', cast(`k` as int))) as later, count(distinct k, part) as several
        from T where pmod(v, 3) = 0 and "x" <=> 'x' group by 1 having n > 1 order by half desc
        """
    )
    found = assert_distributed_like_single_node(frame).to_pylist()
    assert [row["half"] for row in found] == [3, 2, 1, 0]
    assert sum(row["total"] for row in found) == sum(range(0, TOTAL, 3))
    assert sum(row["mean"] * row["n"] for row in found) == pytest.approx(sum(range(0, TOTAL, 3)) / 2)
    assert str(found[0]["later"]) == "2024-07-31"


def test_rows_of_arrays_joins_and_windows_are_distributed(session: Session) -> None:
    frame = session.sql(
        """
        with w as (select k, part, row_number() over (partition by k, part order by v) as n, v from t)
        select w.k, w.part, e from w left semi join t u on w.v = u.v
        lateral view explode(array(n, -n)) x as e where n <= 2
        """
    )
    found = assert_distributed_like_single_node(frame)
    assert found.num_rows == 4 * 7 * 4
    assert found.schema.field("e").type == pa.int32()


def test_value_that_does_not_fit_is_an_error(session: Session) -> None:
    with pytest.raises(UserError):
        session.sql("select sum(v + 9223372036854775807) from t").collect()


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_dialect_is_chosen_by_argument_and_by_setting(session: Session) -> None:
    assert session.sql("select 7 / 2 as q").to_pylist() == [{"q": 3.5}]
    assert session.sql("select 7 / 2 as q", dialect="datafusion").to_pylist() == [{"q": 3}]
    session.sql("set sparkfusion.dialect = datafusion")
    assert session.sql("select 7 / 2 as q").to_pylist() == [{"q": 3}]
    assert session.sql("select 7 / 2 as q", dialect="spark").to_pylist() == [{"q": 3.5}]
    assert session.sql("select 3 as q where 'a' = 'a'").to_pylist() == [{"q": 3}]
    with pytest.raises(UserError, match="takes one of datafusion, spark"):
        session.sql("select 1", dialect="hive")


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_explain_and_settings_are_read_in_both_dialects(session: Session) -> None:
    text = "\n".join(str(row) for row in session.sql("explain select k div 2 from t").to_pylist())
    assert "stage" in text
    assert session.sql("show sparkfusion.dialect").to_pylist()[0]["value"] == "spark"


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_functions_of_the_user_are_called(session: Session) -> None:
    session.register_udf(udf(lambda v: pa.compute.multiply(v, 3), [pa.int64()], pa.int64(), "immutable", "thrice"))
    found = session.sql("select sum(THRICE(v)) as s from t").to_pylist()
    assert found == [{"s": 3 * sum(range(TOTAL))}]


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_parameters_have_values(session: Session) -> None:
    values = {"n": 7, "d": Decimal("2.50"), "s": "it's", "at": datetime(2024, 1, 2, 3), "day": date(2024, 1, 2)}
    found = session.sql(
        "select :n / 2 as n, :d * 2 as d, :s || '!' as s, hour(:at) as h, :day + 1 as t, :x is null as x",
        values,
        x=None,
    )
    assert [*found.to_pylist()[0].values()] == [3.5, Decimal("5.00"), "it's!", 3, date(2024, 1, 3), True]
    with pytest.raises(UserError, match="parameter :q has no value"):
        session.sql("select :q", values)


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_time_zone_is_refused(session: Session) -> None:
    session.sql("set datafusion.execution.time_zone = '+02:00'")
    with pytest.raises(UserError, match="timestamps in UTC"):
        session.sql("select 1")


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_package_is_loaded_when_it_is_needed() -> None:
    program = "import sys, sparkfusion; sparkfusion.connect().sql('select 1'); print('sqlglot' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_missing_package_is_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(UserError) as raised:
        session.sql("select 1")
    assert raised.value.message == "the spark dialect needs sqlglot, which is not installed"
    assert "sparkfusion[dialect]" in str(raised.value.hint)


@pytest.mark.runners(LOCAL, reason=NO_TASKS)
def test_unknown_names_are_told(session: Session) -> None:
    for query, words in (
        ("select q from t", "column 'q' not found"),
        ("select 1 from tt", "table 'tt' not found"),
        (
            "select * from parquet.`/data/t`",
            "in FROM is not available in the spark dialect: files cannot be read by their path",
        ),
        ("select soundx(k) from t", "the function soundx is not available in the spark dialect"),
    ):
        with pytest.raises(UserError) as raised:
            session.sql(query)
        assert words in raised.value.message
        assert raised.value.hint
