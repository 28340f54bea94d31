"""DataFusion tells its options in SQL. A session asks once, and again after whatever may have changed them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sparkfusion
from sparkfusion import Session
from sparkfusion.session.session_settings import SessionSettings
from sparkfusion.verify import verify_query

BATCH_SIZE = "datafusion.execution.batch_size"


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as session:
        session.config[BATCH_SIZE] = 100
        yield session


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each time the options are read."""
    seen: list[None] = []
    ask = SessionSettings._datafusion_rows

    def count(self: SessionSettings) -> list[dict[str, str | None]]:
        seen.append(None)
        return ask(self)

    monkeypatch.setattr(SessionSettings, "_datafusion_rows", count)
    return seen


def test_queries_do_not_read_the_options_again(session: Session, reads: list[None]) -> None:
    session.sql("select 1").collect()
    del reads[:]
    session.sql("select 2").collect()
    assert reads == []


def test_a_verified_session_does_not_read_the_options_again(session: Session, reads: list[None]) -> None:
    for query in ("select 1 as one", "select no_such_column", "create table made (v int)"):
        verify_query(session, query)
    session.sql("select 1").collect()
    del reads[:]
    session.sql("select 2").collect()
    assert reads == []


def test_what_is_read_is_not_shared(session: Session) -> None:
    session.config.datafusion_options().clear()
    assert session.config[BATCH_SIZE] == "100"


@pytest.mark.parametrize("statement", [f"set {BATCH_SIZE} = 7", f"  /* new */ SET {BATCH_SIZE} TO 7"])
def test_a_statement_that_sets_an_option_is_seen(session: Session, statement: str) -> None:
    session.sql(statement)
    assert session.config[BATCH_SIZE] == "7"


def test_a_reset_is_seen(session: Session) -> None:
    session.sql(f"reset {BATCH_SIZE}")
    assert session.config[BATCH_SIZE] == "8192"


def test_what_is_set_in_the_context_below_is_seen(session: Session) -> None:
    context = session.context
    assert session.config[BATCH_SIZE] == "100"
    context.sql(f"set {BATCH_SIZE} = 7")
    assert session.config[BATCH_SIZE] == "7"
    context.sql(f"set {BATCH_SIZE} = 9")
    assert session.config[BATCH_SIZE] == "9"
