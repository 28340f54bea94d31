"""A worker ends on SIGTERM, at whatever moment the signal comes."""

from __future__ import annotations

import subprocess
import sys

WAITS = """
import signal, sys
from sparkfusion.cli.commands import worker

def send(frame, event, argument):
    signal.raise_signal(signal.SIGTERM)
    return send

stop = worker._stop_on_signals()
sys.settrace(send)  # a signal before each line that runs while the worker waits
worker._wait_for_signal(stop)
sys.settrace(None)
print("stopped")
"""


def test_a_signal_in_the_middle_of_the_wait_stops_a_worker() -> None:
    """The handler runs on the main thread, between two lines of the wait. It must need no lock that the wait holds."""
    ended = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "stopped\n"), ended.stderr
