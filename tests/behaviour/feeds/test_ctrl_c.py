"""Ctrl-C ends a script whose provider blocks for ever, promptly, and leaves no files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.behaviour.probes import PATIENCE, PROMPT

SCRIPT = """
import asyncio, os, sys, threading, time
import pyarrow as pa
import sparkfusion

say = lambda text: os.write(1, (text + "\\n").encode())

class Blocked(sparkfusion.WorkUnitFeedProvider):
    def feed(self, partition, context):
        yield sparkfusion.WorkUnit(1)
        say("blocked")
        if sys.argv[1] == "sleep":
            time.sleep(1000)
        threading.Event().wait()

    def close(self):
        say("closed")

class AsyncBlocked(Blocked):
    async def feed(self, partition, context):
        yield sparkfusion.WorkUnit(1)
        say("blocked")
        try:
            await asyncio.Event().wait()
        finally:
            say("finally")

def read(unit, context):
    if sys.argv[1] == "reader":
        say("blocked")
        threading.Event().wait()
    return pa.record_batch({"v": pa.array([unit.payload], pa.int64())})

def tell_when_main_waits():
    while True:
        frame, stack = sys._current_frames()[threading.main_thread().ident], []
        while frame is not None:
            stack.append(frame.f_code.co_name)
            frame = frame.f_back
        if stack[:2] == ["get", "next_frame"]:
            say("waiting")
            return
        time.sleep(0.005)

provider = AsyncBlocked() if sys.argv[1] == "async" else Blocked()
session = sparkfusion.connect()
session.register_feed("f", provider, schema=pa.schema([("v", pa.int64())]), reader=read, tasks=2)
try:
    threading.Thread(target=tell_when_main_waits, daemon=True).start()
    session.sql(sys.argv[2]).collect()
    say("finished")
except KeyboardInterrupt:
    say("after " + str(session.sql("select 1 as one").to_pylist()))
    raise
"""

BLOCKED = {
    "wait": "select v from f",
    "sleep": "select sum(v) from f",
    "async": "select sum(v) from f",
    "reader": "select v from f",
}


def test_ctrl_c_ends_scripts_whose_feeds_block(tmp_path: Path) -> None:
    """Four of them, at the same time, because each takes some seconds."""
    started = {kind: _start(tmp_path, kind, query) for kind, query in BLOCKED.items()}
    for process in started.values():
        _wait_until_blocked(process)
    begun = time.monotonic()
    for process in started.values():
        process.send_signal(signal.SIGINT)
    for kind, process in started.items():
        out, err = _end(process)
        assert time.monotonic() - begun < PROMPT, kind
        assert process.returncode != 0, kind
        assert "KeyboardInterrupt" in err, kind
        assert "after [{'one': 1}]" in out, kind
        assert "finished" not in out, kind
        assert out.count("closed") == 1, kind
        assert ("finally" in out) == (kind == "async"), kind
        assert list((tmp_path / kind).iterdir()) == [], kind
        assert list(Path("/dev/shm").glob(f"sparkfusion-{process.pid}-*")) == [], kind


def _start(directory: Path, kind: str, query: str) -> subprocess.Popen[str]:
    scratch = directory / kind
    scratch.mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, kind, query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )


def _wait_until_blocked(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    left = {"waiting\n", "blocked\n"}
    while left:
        line = process.stdout.readline()
        assert line, "the script ended"
        left.discard(line)


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()
