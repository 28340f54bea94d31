"""The benchmark's end of an engine's process: starts it, asks it, and ends it with everything that came from it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

import sparkfusion
from benchmarks.all.memory import MemoryWatch, resident_below

START_SECONDS = 300.0
END_SECONDS = 30.0
ROOT = Path(__file__).parents[2]
_TAIL = 2000


class NotAnsweredError(Exception):
    """The engine gave no answer: it failed, ended, or took too long. The message says which."""


class EngineProcess:
    """One process with one or more engines. It starts when it is first asked, and again after it was ended.

    A process that was ended while it did nothing is started again without a word. One that never started stays
    unusable: each question gets the same error, at once.
    """

    def __init__(self, process: str, data: Path, home: Path, python: Path | None = None) -> None:
        self.versions: dict[str, str] = {}
        self.peak_bytes = 0
        self._name = process
        self._data = data
        self._home = home
        self._python = python
        self._running: subprocess.Popen[bytes] | None = None
        self._input = b""
        self._busy = False
        self._unusable = ""

    def start(self) -> bool:
        """Start it if it does not run, and say whether that was so. Raises `NotAnsweredError` if it cannot."""
        if self._unusable:
            raise NotAnsweredError(self._unusable)
        if self._running is not None and not _has_ended(self._running.pid):
            return False
        self.end()
        shutil.rmtree(self._home, ignore_errors=True)
        (self._home / "tmp").mkdir(parents=True)
        self._input = b""
        try:
            self._running = self._popen()
            self.versions = self._read_line(START_SECONDS)["versions"]
        except (OSError, NotAnsweredError) as error:
            self._unusable = f"it did not start: {error}"
            self.end()
            raise NotAnsweredError(self._unusable) from error
        return True

    @property
    def resident_bytes(self) -> int:
        """Memory that its processes hold now."""
        return 0 if self._running is None else resident_below(self._running.pid)

    def ask(self, engine: str, sql: str, seconds: float) -> dict[str, Any]:
        """Run a query. Rows are in `answer_path` until the next question, and `peak_bytes` says what it needed.

        That is known of a query without an answer too.
        """
        self.peak_bytes = 0
        self.start()
        assert self._running is not None
        assert self._running.stdin is not None
        watch = MemoryWatch(self._running.pid)
        try:
            with watch:
                with suppress(BrokenPipeError):  # reading finds out why
                    self._running.stdin.write(json.dumps({"engine": engine, "sql": sql}).encode() + b"\n")
                    self._running.stdin.flush()
                answer = self._read_line(seconds)
        finally:
            self.peak_bytes = watch.peak
        if "error" in answer:
            raise NotAnsweredError(answer["error"])
        return answer

    @property
    def answer_path(self) -> Path:
        return self._home / "answer.arrow"

    def end(self) -> None:
        """End it with everything below it: by closing its input, and if that takes long, or a query runs, by force."""
        running, self._running = self._running, None
        busy, self._busy = self._busy, False
        if running is None:
            return
        below = _descendants(running.pid)
        assert running.stdin is not None
        with suppress(BrokenPipeError):
            running.stdin.close()
        if not busy:
            deadline = time.monotonic() + END_SECONDS
            while not _has_ended(running.pid) and time.monotonic() < deadline:
                time.sleep(0.02)
            psutil.wait_procs(below, timeout=max(0.0, deadline - time.monotonic()))
        for each in (*below, *_descendants(running.pid)):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        os.killpg(running.pid, signal.SIGKILL)  # what has lost its parent, too; the group is there until we wait
        running.wait()
        assert running.stdout is not None
        running.stdout.close()

    def _popen(self) -> subprocess.Popen[bytes]:
        command = [str(self._python or sys.executable), "-m", "benchmarks.all.serve", self._name]
        with open(self._home / "log", "wb") as log:
            return subprocess.Popen(
                [*command, str(self._data.resolve()), str(self._home)],
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(self._home / "tmp"), "PYTHONPATH": self._python_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the benchmark, which ends its processes then
            )

    def _python_path(self) -> str:
        """An environment of its own has its own packages; ours shall find the sparkfusion that runs here."""
        ours: Sequence[Path] = () if self._python else (Path(sparkfusion.__file__).parents[1],)
        return os.pathsep.join(map(str, (*ours, ROOT)))

    def _read_line(self, seconds: float) -> dict[str, Any]:
        assert self._running is not None
        assert self._running.stdout is not None
        self._busy = True
        deadline = time.monotonic() + seconds
        while b"\n" not in self._input:
            ready, _, _ = select.select([self._running.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.end()
                raise NotAnsweredError(f"no answer within {seconds:g} s")
            read = os.read(self._running.stdout.fileno(), 1 << 16)
            if not read:
                raise NotAnsweredError(self._how_it_ended())
            self._input += read
        self._busy = False
        line, self._input = self._input.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _how_it_ended(self) -> str:
        assert self._running is not None
        running = self._running
        self.end()
        status = running.returncode
        shown = (self._home / "log").read_text(errors="replace")[-_TAIL:].strip()
        last = shown.splitlines()[-1] if shown else "its log is empty"
        return f"its process ended with status {status}: {last}"


def _has_ended(pid: int) -> bool:
    """Whether our child has ended. It is not waited for: until then nobody else gets its id."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _descendants(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []
