"""Ctrl-C at a bad moment, while a query begins, leaves nothing on workers and in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.runner.coordinated_job import CoordinatedJob
from sparkfusion.runner.worker_job import WorkerJob
from sparkfusion.transport.base import Access
from sparkfusion.transport.flight.server import FlightTaskSide
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.server.worker_options import WorkerOptions
from tests import in_process_workers
from tests.in_process_workers import start_worker, stop_worker
from tests.worker_processes import IDLE


@pytest.fixture
def address() -> Iterator[str]:
    address, _ = start_worker(WorkerOptions(2))
    yield address
    stop_worker(address)


@pytest.fixture(params=["embedded", "a worker"])
def session(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[sparkfusion.Session]:
    for part in range(2):
        pq.write_table(pa.table({"x": range(100)}), tmp_path / f"{part}.parquet")
    target = None if request.param == "embedded" else sparkfusion.Cluster([address])
    with sparkfusion.connect(target, config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("t", str(tmp_path))
        yield session


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_while_it_begins(session: sparkfusion.Session, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CoordinatedJob, "begin", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.sql("select sum(x) from t").collect()
    check_nothing_is_left(address)
    assert session.sql("select count(*) as n from t where x >= 0").to_pylist() == [{"n": 200}]


def test_while_workers_are_asked_to_hold_it(
    session: sparkfusion.Session, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: WorkerJob, members: Any, secret: str) -> None:
        hold(job, members, secret)
        raise KeyboardInterrupt

    hold = WorkerJob._hold
    with monkeypatch.context() as patch:
        patch.setattr(WorkerJob, "_hold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.sql("select sum(x) from t").collect()
    check_nothing_is_left(address)


def check_nothing_is_left(address: str) -> None:
    assert set(in_process_workers.services) <= {address}
    if address in in_process_workers.services:
        assert connect(address, Access()).status() == IDLE


class Silent:
    """A call whose other end says nothing."""

    def write_metadata(self, message: bytes) -> None:
        return


def test_a_task_that_waits_for_units_hears_that_it_is_cancelled() -> None:
    channel = FlightTaskSide(Silent(), Silent(), 1000)
    channel.cancel.cancel()
    with pytest.raises(ChannelClosedError):
        channel.take(0)
