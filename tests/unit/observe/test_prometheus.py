"""Metrics as text that Prometheus reads, and the server that gives it away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sparkfusion.errors import QueryCancelledError, UserError
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.observe.metrics_server import MetricsServer
from sparkfusion.observe.prometheus import CONTENT_TYPE, MetricFamily, render_text, worker_families
from sparkfusion.worker.server.task_tally import TaskCounter, TaskTally, WorkerMetrics
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import Fetched, TaskReport

PATIENCE = 60
METRICS = WorkerMetrics(
    WorkerInfo("0.1", "55.0", "3.11", slots=4, host="h", trusts_python=False),
    WorkerStatus(running=5, queries=2, files=7, bytes=700),
    TaskTally(running=3, finished=10, failed=2, cancelled=1, rows=1000, bytes=8000, seconds=12.5, fetched_bytes=90),
    memory_bytes=123,
    memory_limit=456,
    started_at=1000.0,
)


def values_of(text: str) -> dict[tuple[str, str], float]:
    """What Prometheus' own parser reads, by name and outcome."""
    return {
        (sample.name, sample.labels.get("outcome", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_workers_metrics_are_read_by_prometheus() -> None:
    text = render_text(worker_families(METRICS, now=1060.0))
    plain = {name: value for (name, outcome), value in values_of(text).items() if not outcome}
    assert {name.removeprefix("sparkfusion_worker_"): value for name, value in plain.items()} == {
        "info": 1,
        "slots": 4,
        "tasks_running": 3,
        "tasks_waiting": 2,
        "task_seconds_total": 12.5,
        "rows_total": 1000,
        "bytes_total": 8000,
        "fetched_bytes_total": 90,
        "queries": 2,
        "stored_files": 7,
        "stored_bytes": 700,
        "memory_bytes": 123,
        "memory_limit_bytes": 456,
        "start_time_seconds": 1000,
        "uptime_seconds": 60,
    }
    ended = {what: value for (name, what), value in values_of(text).items() if name.endswith("tasks_total")}
    assert ended == {"finished": 10, "failed": 2, "cancelled": 1}


def test_every_metric_is_explained_and_typed() -> None:
    families = list(text_string_to_metric_families(render_text(worker_families(METRICS, now=1060.0))))
    assert len(families) == 16
    for family in families:
        assert family.documentation.endswith(".")
        assert family.type == ("counter" if any(s.name.endswith("_total") for s in family.samples) else "gauge")


@pytest.mark.parametrize("value", ['say "so"', "back\\slash", "two\nlines", "\\n", "Ünïcode", ""])
def test_labels_and_explanations_are_escaped(value: str) -> None:
    text = render_text([MetricFamily("a", "gauge", f"about {value}", (({"b": value}, 1.0), ({"b": "other"}, 2)))])
    (family,) = text_string_to_metric_families(text)
    assert [sample.labels["b"] for sample in family.samples] == [value, "other"]
    assert [sample.value for sample in family.samples] == [1.0, 2.0]
    assert len(text.splitlines()) == 4


def test_attempts_are_counted_by_how_they_ended() -> None:
    counter = TaskCounter()
    with counter.count_running():
        assert counter.tally.running == 1
    fetched = (Fetched(1, 30, 1, 0.1), Fetched(2, 12, 1, 0.1))
    manifest = Manifest(TaskKey("q", 1, 0), ())
    counter.note_end(TaskReport(TaskKey("q", 1, 0), manifest, rows=5, seconds=0.5, fetched=fetched))
    counter.note_failure(QueryCancelledError("stopped"))
    counter.note_failure(UserError("no"))
    assert counter.tally == TaskTally(0, 1, 1, 1, rows=5, seconds=0.5, fetched_bytes=42)


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    made = MetricsServer(lambda: "a 1\n", "127.0.0.1", 0, patience=10 * PATIENCE)
    yield made
    made.close()
    made.close()


def test_the_server_answers_at_one_path_only(server: MetricsServer) -> None:
    with urlopen(server.url, timeout=PATIENCE) as answer:
        assert answer.read() == b"a 1\n"
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        assert "Python" not in answer.headers["Server"]
    with pytest.raises(HTTPError) as refused:
        urlopen(server.url.replace("/metrics", "/secrets"), timeout=PATIENCE)
    assert refused.value.code == 404
    refused.value.close()
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(server.url, data=b"x" * 10, method="POST"), timeout=PATIENCE)
    assert refused.value.code == 501
    refused.value.close()


def test_callers_that_hang_take_a_few_places_only(server: MetricsServer) -> None:
    """Others are refused, and served again when the places are free."""
    port = int(server.url.split(":")[2].split("/")[0])
    before = threading.active_count()
    hanging = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(30)]
    try:
        refused = [each for each in hanging[8:] if each.recv(1) == b""]
        assert len(refused) == 22
        assert threading.active_count() <= before + 8
    finally:
        for each in hanging:
            each.close()
    while True:
        try:
            with urlopen(server.url, timeout=PATIENCE) as answer:
                assert answer.read() == b"a 1\n"
            return
        except (OSError, HTTPError):  # their places are not free yet
            continue


def test_a_taken_port_is_an_error_that_says_what_to_do(server: MetricsServer) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(UserError, match=f"cannot serve metrics on 127.0.0.1:{port}: Address already in use") as error:
        MetricsServer(lambda: "", "127.0.0.1", port)
    assert "another --metrics-port" in str(error.value)
