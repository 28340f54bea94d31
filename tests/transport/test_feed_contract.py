"""What a task that reads a feed can rely on, whichever way its messages go."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import QueryCancelledError, UserError
from sparkfusion.errors import InternalError
from sparkfusion.runner.spark.driver_calls.feed_call import FeedCall
from sparkfusion.runner.spark.mail.mail_call import MailCall
from tests.suites.fake_s3 import fake_s3
from tests.transport.fed_tasks import (
    Numbers,
    Served,
    call,
    deliver,
    numbers,
    payloads,
    serve_by_mail,
    serve_by_server,
    take,
)


@pytest.fixture
def provider() -> Numbers:
    return Numbers(3)


@pytest.fixture(params=["server", "directory", "bucket"])
def served(request: pytest.FixtureRequest, provider: Numbers, tmp_path: Path) -> Iterator[Served]:
    way = request.param
    if way == "server":
        with serve_by_server(provider) as (made, _, _):
            yield made
    elif way == "directory":
        with serve_by_mail(provider, str(tmp_path / "mail")) as (made, _):
            yield made
    else:
        with fake_s3() as server, serve_by_mail(provider, server.url("store/mail")) as (made, _):
            yield made


def test_units_come_in_order_and_again_to_another_attempt(served: Served) -> None:
    found, offset = [], 0
    with call(served.address) as units:
        while (data := units.take(offset)) is not None:
            found += payloads(data)
            offset += 1
    assert found == [0, 1, 2]
    again = [number for place in range(offset) for number in take(served.address, place)]
    assert again == found


def test_rows_are_with_the_consumer_when_the_call_has_ended(served: Served) -> None:
    with call(served.address, 5) as units:
        assert units.first == 7
        deliver(units, 2, [numbers(n, n) for n in range(3)])
        deliver(units, 3, [numbers(9)])
    assert served.rows == [(5, 2, [0, 0, 1, 1, 2, 2]), (5, 3, [9])]


def test_rows_of_a_task_that_fails_on_the_way_are_not_delivered(served: Served) -> None:
    with pytest.raises(ValueError, match="half-way"), call(served.address) as units:
        deliver(units, 0, half_way())
    assert take(served.address)
    assert served.rows == []


def half_way() -> Iterator[pa.RecordBatch]:
    yield numbers(1)
    raise ValueError("half-way")


def test_a_consumer_that_has_gone_ends_the_task(served: Served) -> None:
    served.failure = QueryCancelledError("the consumer closed the query")
    with pytest.raises(QueryCancelledError, match="the consumer closed"), call(served.address) as units:
        deliver(units, 0, [numbers(1)])


@pytest.mark.long
def test_many_rows_for_a_consumer_that_has_gone_end_the_task_too(served: Served) -> None:
    served.failure = QueryCancelledError("the consumer closed the query")
    with pytest.raises(QueryCancelledError, match="the consumer closed"), call(served.address) as units:
        deliver_for_ever(units)


def deliver_for_ever(units: FeedCall | MailCall) -> None:
    for offset in itertools.count():
        deliver(units, offset, [numbers(*range(1000))])


@pytest.mark.parametrize("provider", [Numbers(0, ValueError("the listing is broken"))], ids=["broken"])
def test_an_error_of_the_provider_reaches_the_task(served: Served) -> None:
    with pytest.raises(UserError, match="table 't' failed: ValueError: the listing is broken"):
        take(served.address)


def test_a_query_that_ends_while_a_task_waits_ends_the_task(served: Served) -> None:
    assert take(served.address) == [0, 1, 2]
    served.book.stop()
    with pytest.raises(QueryCancelledError):
        take(served.address, 1)


def test_nobody_gets_ahead_of_a_ledger(served: Served) -> None:
    with pytest.raises(InternalError, match="but it has been given fewer"):
        take(served.address, 1)
    assert take(served.address)


def test_the_secret_is_not_shown(served: Served) -> None:
    assert served.address.secret not in repr(served.address)
