"""On Spark Connect, the other end of a store is the program with the session. The driver is the server's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkfusion import ResourceError
from sparkfusion.runner.spark import reach
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.reach import Visit


class Server:
    """A Spark Connect session that nobody asks anything."""


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> ConnectApplication:
    monkeypatch.setattr(ConnectApplication, "check", lambda self: None)
    server: Any = Server()
    return ConnectApplication(server)


def test_the_error_blames_the_program(
    application: ConnectApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "_send", lambda visit: [Visit("node-3", left="nothing.arrow")])
    with pytest.raises(ResourceError, match="on node-3: this program does not see files written there") as caught:
        application.check_reach(str(tmp_path))
    assert "on the machine of this program and on every node of Spark" in (caught.value.hint or "")
    assert "driver" not in str(caught.value)


def test_tasks_that_miss_the_file_of_the_program(
    application: ConnectApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def miss(place: str, name: str) -> bytes:
        raise FileNotFoundError(name)

    monkeypatch.setattr(reach, "_read", miss)
    monkeypatch.setattr(application, "_send", lambda visit: list(visit([0])))
    with pytest.raises(ResourceError, match="the file that this program wrote is not there"):
        application.check_reach(str(tmp_path))
