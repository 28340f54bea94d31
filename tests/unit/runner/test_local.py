"""The worker of the local runner: it has no address that an error could show."""

from __future__ import annotations

import pytest

from sparkfusion.errors import ExternalError, SparkfusionError
from sparkfusion.runner.members import Member
from sparkfusion.transport.in_process import InProcessChannel
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.worker_options import WorkerOptions


def test_errors_name_the_worker_without_an_address() -> None:
    service = WorkerService(WorkerOptions(slots=1))
    channel = InProcessChannel(service)
    member = Member(channel, channel.info())
    heard: list[SparkfusionError] = []
    channel.hold("q", "secret", 10.0, heard.append)
    service.close()
    with pytest.raises(ExternalError) as caught:
        channel.info()
    assert member.address == ""
    assert caught.value.message == f"{member.name} is closed" == "the worker in this process is closed"
    assert [error.message for error in heard] == ["the worker in this process ended the query"]
