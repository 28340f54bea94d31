"""The harness itself: a process that hangs or dies is told as that, and nothing of it is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.behaviour.probes import until
from tests.cluster.experiment import Experiment
from tests.cluster.process import ClusterDiedError, ClusterProcess

pytestmark = pytest.mark.timeout(func_only=True)

ANYTHING = Experiment("select 1", "shared", {})
HANGS = """
import subprocess, time
subprocess.Popen(["sleep", "1000"], start_new_session=True)  # as far away as a killed executor's daemon
print("ready", flush=True)
time.sleep(1000)
"""
DIES_WHEN_ASKED = """
import sys
print("ready", flush=True)
if sys.stdin.readline():
    raise MemoryError("no room for a cluster")
"""


Start = Callable[[str], ClusterProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a script in the place of the cluster; it is killed when the test ends, also when it fails."""
    with ExitStack() as stack:

        def start(script: str) -> ClusterProcess:
            process = ClusterProcess(tmp_path / "home", [sys.executable, "-c", script])
            stack.callback(process.kill)
            process.wait_until_ready()
            return process

        yield start


def test_a_process_that_hangs_is_killed_with_all_that_it_started(start: Start) -> None:
    process = start(HANGS)
    until(lambda: len(list(process.processes())) == 2, "both are there")
    with pytest.raises(ClusterDiedError, match=r"has not answered for 0\.1 s"):
        process.ask(ANYTHING, seconds=0.1)
    assert not list(process.processes())
    with pytest.raises(ClusterDiedError, match="is not running any more"):
        process.ask(ANYTHING)
    assert process.close() == []
    assert not process.home.exists()


def test_a_process_that_dies_has_the_last_word(start: Start) -> None:
    process = start(DIES_WHEN_ASKED)
    with pytest.raises(ClusterDiedError, match="MemoryError: no room for a cluster"):
        process.ask(ANYTHING)
    assert process.close() == []


def test_what_is_left_is_named(start: Start) -> None:
    process = start(DIES_WHEN_ASKED)
    (process.home / "frames" / "sparkfusion-1-query").mkdir()
    (left,) = process.close()
    assert left.endswith("frames/sparkfusion-1-query")
    assert not process.home.exists()
