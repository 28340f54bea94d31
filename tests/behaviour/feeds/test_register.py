"""Registering a feed: what is wrong is said at once, by the table's name, and leaves the session as it was."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import FileUnit, Session, UserError, WorkUnit, WorkUnitFeed, WorkUnitFeedProvider
from tests.suites.feeds import ONE_STORE, SCHEMA, Scripted, batch_of, feed_numbers, read_number

pytestmark = ONE_STORE

Arguments = dict[str, Any]

WRONG: dict[str, tuple[Arguments, str]] = {
    "no schema": ({"reader": read_number}, "needs a schema"),
    "no format and no reader": ({"schema": SCHEMA}, "format .* or a reader"),
    "both": ({"schema": SCHEMA, "format": "csv", "reader": read_number}, "not both"),
    "unknown format": ({"schema": SCHEMA, "format": "orc"}, "no format 'orc'"),
    "unknown option": ({"schema": SCHEMA, "format": "csv", "colour": "red"}, "colour"),
    "wrong option": ({"schema": SCHEMA, "format": "csv", "delimiter": "long"}, "delimiter|Delimiter"),
    "option of a reader": ({"schema": SCHEMA, "reader": read_number, "delimiter": ";"}, "delimiter"),
    "schema of the wrong kind": ({"schema": {"a": "int"}, "reader": read_number}, "schema is a dict"),
    "list as schema": ({"schema": [("a", pa.int64())], "reader": read_number}, "schema is a list"),
    "duplicate column": ({"schema": pa.schema([("a", pa.int64())] * 2), "reader": read_number}, "a"),
    "no tasks": (
        {"schema": SCHEMA, "reader": read_number, "tasks": 0},
        "tasks must be a whole number of at least 1, not 0",
    ),
    "text as tasks": (
        {"schema": SCHEMA, "reader": read_number, "tasks": "2"},
        "tasks must be a whole number of at least 1, not '2'",
    ),
    "half a task": (
        {"schema": SCHEMA, "reader": read_number, "tasks": 1.5},
        "tasks must be a whole number of at least 1, not 1.5",
    ),
    "yes as tasks": (
        {"schema": SCHEMA, "reader": read_number, "tasks": True},
        "tasks must be a whole number of at least 1, not True",
    ),
    "no partitions": (
        {"schema": SCHEMA, "reader": read_number, "partitions": 0},
        "partitions must be a whole number of at least 1, not 0",
    ),
    "negative rows": (
        {"schema": SCHEMA, "reader": read_number, "rows": -1},
        "rows must be a whole number of at least 0, not -1",
    ),
    "negative bytes": (
        {"schema": SCHEMA, "reader": read_number, "bytes": -1},
        "bytes must be a whole number of at least 0, not -1",
    ),
    "partition columns of a reader": (
        {"schema": SCHEMA, "reader": read_number, "partition_columns": ["k"]},
        "partition columns are for feeds of files",
    ),
    "unknown partition column": ({"schema": SCHEMA, "format": "csv", "partition_columns": ["x"]}, "'x' is not in"),
    "partition column without a type": (
        {"schema": SCHEMA, "format": "csv", "partition_columns": [("x",)]},
        "partition column",
    ),
    "partition column of a wrong type": (
        {"schema": SCHEMA, "format": "csv", "partition_columns": [("x", "no type")]},
        "partition column",
    ),
    "partition column that is no pair": (
        {"schema": SCHEMA, "format": "csv", "partition_columns": [3]},
        "partition column",
    ),
    "reader that cannot be called": ({"schema": SCHEMA, "reader": "read"}, "reader"),
}


@pytest.mark.runners("local", reason="nothing runs: it is about what is said")
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_are_refused_by_name(session: Session, wrong: str) -> None:
    arguments, message = WRONG[wrong]
    with pytest.raises(UserError, match=message) as raised:
        session.register_feed("events", Scripted(range(3)), **arguments)
    assert "'events'" in raised.value.message
    feed_numbers(session, "events", range(3))
    assert session.sql("select count(*) as n from events").to_pylist() == [{"n": 9}], "the name is still free"


PROVIDERS: dict[str, Callable[[], Any]] = {
    "a list": lambda: [WorkUnit(1)],
    "nothing": lambda: None,
    "no method": type("Pages", (), {"feed": 3}),
    "a remote feed": lambda: pickle.loads(pickle.dumps(WorkUnitFeed(Scripted([])))),
}


@pytest.mark.runners("local", reason="nothing runs: it is about what is said")
@pytest.mark.parametrize("kind", PROVIDERS)
def test_what_is_no_provider_is_refused_by_name(session: Session, kind: str) -> None:
    with pytest.raises(UserError, match="'events'"):
        session.register_feed("events", PROVIDERS[kind](), schema=SCHEMA, reader=read_number)
    assert not session.table_exist("events")


@pytest.mark.runners("local", reason="nothing runs: it is about what is said")
def test_a_name_that_is_taken_is_refused(session: Session) -> None:
    session.register_record_batches("t", [[batch_of(1)]])
    feed_numbers(session, "f", range(2))
    for name in ("t", "f"):
        with pytest.raises(UserError, match=f"'{name}'.*exist"):
            feed_numbers(session, name, range(9))
    feed_numbers(session, "g", range(3))
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 6}]
    assert session.sql("select count(*) as n from g").to_pylist() == [{"n": 9}]
    assert session.sql("select count(*) as n from t").to_pylist() == [{"n": 3}]


def test_a_name_may_be_used_again(session: Session) -> None:
    first = feed_numbers(session, "f", range(2))
    before = session.sql("select count(*) as n from f")
    session.deregister_table("f")
    second = feed_numbers(session, "f", range(5))
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 15}]
    assert before.to_pylist() == [{"n": 6}], "a frame keeps the table that it was made over"
    assert (first.asked, second.asked) == (2, 5)


def test_a_provider_may_say_everything_itself(session: Session) -> None:
    class Complete(Scripted):
        tasks = 2
        reader = staticmethod(read_number)

        def schema(self) -> pa.Schema:
            return SCHEMA

    provider = Complete(lambda partition, context: [partition], partitions=3)
    session.register_feed("f", provider)
    assert session.sql("select count(distinct unit) as n from f").to_pylist() == [{"n": 3}]
    assert provider.contexts[0].tasks == 2


def test_arguments_stand_above_what_a_provider_says(session: Session) -> None:
    class Modest(Scripted):
        tasks = 1
        schema = pa.schema([("x", pa.int64())])

    provider = Modest(range(4))
    feed_numbers(session, "f", provider, tasks=3)
    assert session.sql("select count(v) as n from f").to_pylist() == [{"n": 12}]
    assert provider.contexts[0].tasks == 3


def test_a_feed_object_may_be_registered(session: Session) -> None:
    provider = Scripted(range(4))
    session.register_feed("f", WorkUnitFeed(provider), schema=SCHEMA, reader=read_number)
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 12}]
    assert provider.closed == 1


def test_a_feed_that_says_it_is_small_is_read_by_one_task(session: Session) -> None:
    small = feed_numbers(session, "small", range(4), bytes=100)
    large = feed_numbers(session, "large", range(4), bytes=10**12)
    unknown = feed_numbers(session, "unknown", range(4))
    for name in ("small", "large", "unknown"):
        assert session.sql(f"select count(*) as n from {name}").to_pylist() == [{"n": 12}]
    assert small.contexts[0].tasks == 1
    assert large.contexts[0].tasks > 1
    assert unknown.contexts[0].tasks > 1


@pytest.mark.parametrize("hint", [{"bytes": 100}, {"rows": 12}], ids=["bytes", "rows"])
def test_a_feed_that_says_it_is_small_is_broadcast(session: Session, hint: dict[str, int]) -> None:
    feed_numbers(session, "small", range(4), **hint)
    feed_numbers(session, "large", range(9))
    for query in (
        "select large.v from large join small on large.v = small.v",
        "select large.v from small join large on large.v = small.v",
    ):
        assert "mode=CollectLeft" in session.sql(query).explain_text()
        assert session.sql(query).collect().num_rows == 12


def test_the_class_of_providers_is_open() -> None:
    """What the documentation shows is enough: subclass, one method."""

    class Pages(WorkUnitFeedProvider):
        def feed(self, partition: int | None, context: object) -> list[FileUnit]:
            return [FileUnit("a")]

    made = Pages()
    assert (made.partitions, made.tasks, made.rows, made.bytes) == (None, None, None, None)
    made.close()
    with pytest.raises(NotImplementedError):
        WorkUnitFeedProvider().feed(None, None)  # type: ignore[arg-type]
    assert re.search("payload", repr(WorkUnit(1)))


WRONG_UNITS: dict[str, Callable[[], WorkUnit]] = {
    "no weight": lambda: WorkUnit(1, weight=0),
    "negative": lambda: WorkUnit(1, weight=-1),
    "not a number": lambda: WorkUnit(1, weight=float("nan")),
    "file": lambda: FileUnit("a", weight=0),
}


@pytest.mark.parametrize("kind", WRONG_UNITS)
def test_a_units_weight_is_checked(kind: str) -> None:
    with pytest.raises(UserError, match="weight must be a number above 0"):
        WRONG_UNITS[kind]()
