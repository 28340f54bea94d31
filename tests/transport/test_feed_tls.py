"""A feed server with TLS: tasks trust its certificate alone, and nothing is said in the clear."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkfusion import ExternalError, UserError
from sparkfusion.runner.spark.driver_calls.certificate import make_certificate
from sparkfusion.runner.spark.driver_calls.feed_call import FeedCall
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.driver_calls.register_call import RegisterAddress, RegisterCall
from sparkfusion.runner.spark.driver_calls.registry import WELCOME, Registry
from sparkfusion.runner.spark.feed_address import FeedAddress, ServedQuery
from sparkfusion.worker.carry_out import TaskEnds

LOOPBACK = "127.0.0.1"
FIRST = 7


@pytest.fixture
def server() -> Iterator[FeedServer]:
    made = FeedServer(LOOPBACK, 0, make_certificate("a test"))
    yield made
    assert made.stop()


@pytest.fixture
def address(server: FeedServer) -> FeedAddress:
    return server.add("query", LOOPBACK, ServedQuery(lambda task: TaskEnds(), lambda task: FIRST))


def test_a_task_that_has_the_certificate_is_served(address: FeedAddress) -> None:
    assert b"BEGIN CERTIFICATE" in address.certificate
    with FeedCall(address, 0, 0) as call:
        assert call.first == FIRST


def test_the_key_stays_here(address: FeedAddress) -> None:
    assert b"PRIVATE" not in address.certificate
    assert "PRIVATE" not in repr(make_certificate("a test"))


def test_nothing_is_said_in_the_clear(address: FeedAddress) -> None:
    with pytest.raises(ExternalError, match="does not answer"):
        FeedCall(replace(address, certificate=b""), 0, 0)


def test_a_server_with_another_certificate_is_not_talked_to(address: FeedAddress) -> None:
    with pytest.raises(ExternalError, match="does not answer"):
        FeedCall(replace(address, certificate=make_certificate("a test").public), 0, 0)


def test_the_secret_is_needed_all_the_same(address: FeedAddress) -> None:
    with pytest.raises(Exception, match="the query has ended"):
        FeedCall(replace(address, secret="guessed"), 0, 0)


def test_resident_workers_register_over_tls(server: FeedServer) -> None:
    registry, ended = Registry(), threading.Event()
    registry.expect(0, 1)
    secret = server.add_registry(registry.serve)
    to = RegisterAddress(LOOPBACK, server.port, secret, server.certificate)
    with RegisterCall(to, "grpc://somewhere", "executor", 0, 0, ended) as call:
        assert call.answer == WELCOME
        registry.end()
        assert ended.wait(20)
    with pytest.raises(ExternalError):
        RegisterCall(replace(to, certificate=b""), "grpc://somewhere", "executor", 0, 0, ended)


def test_without_the_extra_the_error_names_the_setting_and_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UserError, match=r"which spark\.authenticate asks for, needs cryptography") as refused:
        make_certificate("spark.authenticate")
    assert "sparkfusion[tls]" in (refused.value.hint or "")
