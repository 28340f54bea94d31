"""`sparkfusion worker --metrics-port`: what Prometheus reads from a worker that has run queries."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

import sparkfusion
from sparkfusion import UserError
from sparkfusion.observe.events import TaskFinished
from tests.behaviour.parts import DISTRIBUTED, record, write_parts
from tests.transport.conftest import StartWorker
from tests.transport.test_worker_command import check_refused
from tests.worker_processes import WorkerProcess, url_of


def scrape(worker: WorkerProcess) -> tuple[str, dict[str, float]]:
    """The text, and its numbers by name and outcome."""
    assert worker.metrics is not None
    with urlopen(worker.metrics, timeout=60) as answer:
        text = answer.read().decode()
    values = {
        sample.name.removeprefix("sparkfusion_worker_") + sample.labels.get("outcome", ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return text, values


def test_a_worker_counts_what_its_tasks_did(start_worker: StartWorker, tmp_path: Path) -> None:
    worker = start_worker("--slots", "2", "--metrics-port", "0")
    assert worker.metrics is not None
    assert worker.metrics.startswith("http://127.0.0.1:")
    before = scrape(worker)[1]
    assert (before["tasks_totalfinished"], before["rows_total"], before["slots"]) == (0, 0, 2)
    with sparkfusion.connect(url_of([worker]), config={**DISTRIBUTED, "sparkfusion.task_cores": 1}) as session:
        session.register_parquet("secret_table", write_parts(tmp_path))
        events = record(session)
        session.sql("select k, count(*) from secret_table group by k").collect()
        tasks = [event for event in events if isinstance(event, TaskFinished) and event.key.stage]
        text, after = scrape(worker)
        assert after["tasks_totalfinished"] == len(tasks)
        assert after["rows_total"] == sum(task.rows for task in tasks)
        assert after["bytes_total"] == sum(task.bytes for task in tasks)
        assert after["task_seconds_total"] > 0
        with pytest.raises(UserError):
            session.sql("select k, sum(v / (v - 500)) from secret_table group by k").collect()
        assert scrape(worker)[1]["tasks_totalfailed"] >= 1
    while any((last := scrape(worker)[1])[name] for name in ("tasks_running", "queries", "stored_files")):
        pass  # tasks of the failed query are still ending
    assert last["tasks_waiting"] == 0
    assert last["memory_limit_bytes"] > last["memory_bytes"] > 1_000_000
    assert last["uptime_seconds"] > before["uptime_seconds"] > 0
    assert "secret" not in text
    assert events[0].query not in text


@pytest.mark.long
def test_a_metrics_port_that_somebody_has_ends_the_worker() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check_refused(
            ["--metrics-port", str(port)], f"cannot serve metrics on 127.0.0.1:{port}: Address already in use"
        )
