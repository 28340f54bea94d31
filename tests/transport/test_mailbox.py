"""The mailbox of a query: what is in it, how much, from whom, and what happens when one side is gone."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sparkfusion import ExternalError, QueryCancelledError
from sparkfusion.errors import ProtocolError
from sparkfusion.runner.spark.feed_address import MailAddress
from sparkfusion.runner.spark.mail.mail_call import UNREAD_LETTERS
from sparkfusion.runner.spark.mail.mailbox import BEAT, Mailbox
from sparkfusion.transport.message import pack
from tests.suites.fake_s3 import fake_s3
from tests.transport.fed_tasks import Address, Numbers, Served, call, deliver, numbers, payloads, serve_by_mail, take

PATIENCE = 60.0
LARGE = [numbers(*range(600_000))]
"""More than one letter."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "mail"


@pytest.fixture
def served(place: Path) -> Iterator[Served]:
    with serve_by_mail(Numbers(25), str(place)) as (made, _):
        yield made


def letters(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {BEAT}


def test_every_letter_is_removed_when_it_is_read(served: Served, place: Path) -> None:
    with call(served.address) as units:
        found = [payloads(units.take(offset)) for offset in range(2)]
        deliver(units, 0, LARGE)
        assert len(letters(place)) <= UNREAD_LETTERS
    assert found[0] == list(range(10)), "no more than the provider may be ahead"
    assert letters(place) == set()
    assert served.rows[0][1:] == (0, LARGE[0].column(0).to_pylist())


def test_a_task_that_fails_leaves_nothing(served: Served, place: Path) -> None:
    with pytest.raises(ValueError, match="oh no"):
        fail_on_first_units(served.address)
    take(served.address)  # letters are read in the order in which they come
    assert wait_until(lambda: letters(place) == set())
    assert served.book[0].stats().failed == 10


def test_a_consumer_that_is_slow_stops_the_task(served: Served, place: Path) -> None:
    """A task writes only so many letters that nobody has read."""
    consumer = threading.Event()
    served.before_delivery = lambda: consumer.wait(PATIENCE)
    task = threading.Thread(target=deliver_much, args=(served.address, 2 * UNREAD_LETTERS))
    task.start()
    assert wait_until(lambda: len(letters(place)) >= UNREAD_LETTERS)
    assert len(letters(place)) <= UNREAD_LETTERS + 1, "and one that is just written, under another name"
    consumer.set()
    task.join(PATIENCE)
    assert [offset for _, offset, _ in served.rows] == list(range(2 * UNREAD_LETTERS))
    assert letters(place) == set()


def deliver_much(address: Address, times: int) -> None:
    with call(address) as units:
        for offset in range(times):
            deliver(units, offset, LARGE)


def test_two_attempts_at_once_get_the_same_units(served: Served) -> None:
    with call(served.address) as first, call(served.address) as second:
        found = [payloads(units.take(offset)) for offset in range(2) for units in (first, second)]
    assert found[0] == found[1]
    assert found[2] == found[3]


def fail_on_first_units(address: Address) -> None:
    with call(address) as units:
        units.take(0)
        units.report_failure(0)
        raise ValueError("oh no")


# ---- who may write


def test_a_letter_that_is_not_signed_is_refused(served: Served) -> None:
    assert isinstance(served.address, MailAddress)
    with pytest.raises(ProtocolError, match="does not have the query's signature"):
        call(replace(served.address, secret="guessed"))
    assert take(served.address)


def test_a_letter_under_another_name_is_refused(place: Path) -> None:
    """Who can copy files cannot repeat an answer."""
    box = Mailbox(str(place), "secret")
    box.make()
    box.put("a.mail", [b"one", b"two"])
    assert list(map(bytes, box.read("a.mail") or ())) == [b"one", b"two"]
    shutil.copy(place / "a.mail", place / "b.mail")
    with pytest.raises(ProtocolError, match="signature"):
        box.read("b.mail")
    assert box.read("c.mail") is None


# ---- one side is gone


def test_a_query_that_is_over_ends_its_tasks(tmp_path: Path) -> None:
    place = tmp_path / "mail"
    with serve_by_mail(Numbers(3), str(place)) as (served, server):
        units = call(served.address)
        server.close()
        shutil.rmtree(place)
        with pytest.raises(QueryCancelledError, match="the query has ended"):
            units.take(0)
        with pytest.raises(QueryCancelledError, match="the query has ended"):
            call(served.address)


def test_in_a_bucket_a_task_that_comes_too_late_leaves_nothing() -> None:
    """An object store takes files also after the place was removed."""
    with fake_s3() as server, serve_by_mail(Numbers(3), server.url("store/mail")) as (served, mail):
        units = call(served.address)
        mail.close()
        Mailbox(server.url("store/mail"), "").remove(BEAT)
        with pytest.raises(QueryCancelledError, match="the query has ended"):
            units.take(0)
        assert server.names() == []


def test_a_program_that_is_silent_ends_its_tasks(place: Path) -> None:
    with serve_by_mail(Numbers(3), str(place), patience=0.5) as (served, server):
        units = call(served.address)
        server.close()  # as if its process had ended: the files are there
        with pytest.raises(ExternalError, match=r"the program that runs the query has been silent for \d+ seconds"):
            units.take(0)


def test_a_store_that_takes_no_answer_ends_the_query(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the task would wait for ever."""
    put = Mailbox.put

    def refuse(self: Mailbox, name: str, messages: list[bytes]) -> None:
        if "-answer-" in name:
            raise ExternalError("the disk hiccups")
        put(self, name, messages)

    monkeypatch.setattr(Mailbox, "put", refuse)
    with serve_by_mail(Numbers(3), str(place), patience=0.5) as (served, server):
        box = Mailbox(str(place), server.address.secret)
        begin = {"query": "query", "feed": 0, "task": 0, "host": "h"}
        box.put(f"{'0' * 32}-task-{0:08}.mail", [pack("begin", begin)])
        assert wait_until(lambda: bool(served.aborted))
        assert served.aborted[0].message == "the disk hiccups"


def test_the_beat_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkfusion.runner.spark.mail.mail_server._BEAT_SECONDS", 0.0)
    with serve_by_mail(Numbers(3), str(place)) as (_, server):
        box = Mailbox(str(place), server.address.secret)
        first = box.read(BEAT)
        assert wait_until(lambda: box.read(BEAT) not in (first, None))


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
