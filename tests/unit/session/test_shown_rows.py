"""`print(df)` and notebooks show the first rows, as datafusion-python does. No more than that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from datafusion import SessionContext
from datafusion.dataframe_formatter import configure_formatter, reset_formatter

import sparkfusion
from sparkfusion import DataFrame, Session
from sparkfusion.observe.events import Event, QueryFinished, QueryPlanned

ENDLESS = "with recursive n as (select 1 as i union all select i + 1 from n) select sum(i) as total from n"


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as session:
        yield session


@pytest.fixture
def events(session: Session) -> list[Event]:
    events: list[Event] = []
    session.subscribe(events.append)
    return events


def numbers(session: Session, count: int) -> DataFrame:
    return session.from_pydict({"n": list(range(count)), "name": ["x" * 3] * count})


@pytest.mark.parametrize("count", [0, 3, 10, 11, 500])
def test_the_text_is_that_of_datafusion(session: Session, count: int) -> None:
    theirs = SessionContext().from_arrow(numbers(session, count).collect())
    assert repr(numbers(session, count)) == repr(theirs)
    assert str(numbers(session, count)) == repr(theirs)


def test_one_row_more_than_is_shown_is_computed(session: Session, events: list[Event]) -> None:
    shown = repr(numbers(session, 500))
    assert "| 9 | xxx  |" in shown
    assert shown.endswith("Data truncated.")
    assert [event.rows for event in events if isinstance(event, QueryFinished)] == [11]


def test_datafusions_formatter_decides_how_many(session: Session) -> None:
    configure_formatter(max_rows=2, min_rows=1)
    try:
        assert "| 1 |" in repr(numbers(session, 5))
        assert "| 2 |" not in repr(numbers(session, 5))
    finally:
        reset_formatter()


def test_a_statement_that_writes_is_not_run(session: Session, events: list[Event], tmp_path: Path) -> None:
    statement = session.lazy_sql(f"copy (select 1 as one) to '{tmp_path}/out.csv'")
    assert repr(statement).startswith("DataFrame[count: uint64]\nnot run: it writes")
    assert "not run: it writes" in statement._repr_mimebundle_()["text/html"]
    assert events == []
    assert not list(tmp_path.iterdir())


def test_the_result_of_a_write_is_shown_without_running_it_again(session: Session) -> None:
    session.sql("create table t as values (1)")
    inserted = session.sql("insert into t values (2), (3)")
    assert "| 2     |" in repr(inserted)
    assert session.table("t").count() == 3


def test_a_long_query_is_stopped(session: Session) -> None:
    session.config["sparkfusion.repr_seconds"] = 1
    told = repr(session.sql(ENDLESS))
    assert told.startswith("DataFrame[total: int64]\nno rows after 1 seconds")
    assert "show()" in told


def test_zero_seconds_run_nothing(session: Session, events: list[Event]) -> None:
    session.config["sparkfusion.repr_seconds"] = 0
    assert repr(numbers(session, 3)).startswith("DataFrame[n: int64, name: string]\nnot run")
    assert events == []


def test_errors_are_shown(session: Session) -> None:
    broken = session.sql("select 1 / (i - 1) as x from (values (1)) as t(i)")
    assert "the rows cannot be shown: " in repr(broken)
    assert "ivide by zero" in repr(broken)
    session.close()
    assert "the session is closed" in repr(broken)


def test_a_notebook_gets_every_form_of_one_run(session: Session, events: list[Event]) -> None:
    shown = numbers(session, 3)._repr_mimebundle_()
    assert sorted(shown) == ["text/html", "text/plain"]
    assert "| 2 | xxx  |" in shown["text/plain"]
    assert shown["text/html"].count("<tr>") == 4
    assert sum(isinstance(event, QueryPlanned) for event in events) == 1


def test_html_names_the_columns_of_no_rows(session: Session) -> None:
    assert ">name</th>" in numbers(session, 0)._repr_html_()


def test_html_says_that_there_are_more_rows(session: Session) -> None:
    assert "the first 10 rows; there are more" in numbers(session, 11)._repr_html_()
    assert "more" not in numbers(session, 10)._repr_html_()


def test_html_shows_every_type(session: Session) -> None:
    shown = session.sql(
        "select null as nothing, to_timestamp_nanos(1) as at, [1, null] as list, named_struct('a', 1.5) as s,"
        " repeat('long', 2000) as text, interval '1 day' as i, date '0001-01-01' as d, cast(1.5 as decimal(9, 2)) as p,"
        " [arrow_cast(300000000000, 'Timestamp(Second, None)')] as later"
    )._repr_html_()
    for part in (
        "NULL</td>",
        "1970-01-01 00:00:00.000000001",
        "[1, None]",
        "{&#x27;a&#x27;: 1.5}",
        "long…",
        "(list&lt;item: timestamp[s]&gt;)",
        "0001-01-01",
    ):
        assert part in shown
    assert 'right; white-space: pre-wrap">1.50</td>' in shown


def test_html_of_values_and_errors_is_text(session: Session) -> None:
    marked = session.from_pydict({"<b>": ["<script>alert(1)</script>"]})
    assert "<script>alert" not in marked._repr_html_()
    assert "<b>" not in marked._repr_html_()
    assert "&lt;script&gt;alert(1)" in marked._repr_html_()
    broken = session.sql("select cast(s as int) from (values ('<script>alert(2)')) as t(s)")
    assert "the rows cannot be shown" in broken._repr_html_()
    assert "<script>alert" not in broken._repr_html_()
