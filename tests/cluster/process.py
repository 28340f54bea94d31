"""The test's end of the cluster's process: starts it, asks it, and ends it with everything that came from it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.cluster.experiment import Answer, Experiment
from tests.cluster.serve import READY

START_SECONDS = 280.0
ANSWER_SECONDS = 280.0
END_SECONDS = 30.0
"""How long a step may take before it counts as hanging. Only paid by a test that fails."""

MARK = "TEST_CLUSTER_OF_SPARKFUSION"
_ROOT = Path(__file__).parents[2]
_LOG_TAIL = 10_000


class ClusterDiedError(Exception):
    """The cluster's process ended or did not answer; everything of it is gone."""


class ExperimentFailedError(Exception):
    """The experiment could not be made; the cluster still answers."""


class ClusterProcess:
    """One process with a Spark cluster below it. After a `ClusterDiedError` every further question raises one."""

    def __init__(self, home: Path, command: Sequence[str] = (), *, cores: int = 1) -> None:
        self.home = home
        for part in ("tmp", "frames", "events", "local"):
            (home / part).mkdir(parents=True)
        self._log = home / "log"
        self._input = b""
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*(command or (sys.executable, "-m", "tests.cluster.serve")), str(home), str(cores)],
                cwd=_ROOT,
                env={**os.environ, "TMPDIR": str(home / "tmp"), MARK: str(home)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        answer = self._read_line(seconds)
        assert answer == READY, answer

    def ask(self, experiment: Experiment, seconds: float = ANSWER_SECONDS) -> Answer:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(experiment.to_json().encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._died("is not running any more") from None
        line = self._read_line(seconds)
        if (raised := json.loads(line).get("raised")) is not None:
            raise ExperimentFailedError(raised)
        return Answer.from_json(line)

    def hear(self, seconds: float = ANSWER_SECONDS) -> str:
        """The next line that the process writes."""
        return self._read_line(seconds)

    def close(self) -> list[str]:
        """End the process and everything below it, remove its files; returns what did not end by itself."""
        assert self._process.stdin is not None
        already_dead = self._process.poll() is not None
        self._process.stdin.close()
        deadline = time.monotonic() + END_SECONDS
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        while time.monotonic() < deadline and any(self.processes()):  # JVMs notice it and end by themselves
            time.sleep(0.05)
        left = [f"process {process.pid} ({_command(process)})" for process in self.processes()]
        left += [f"file {path}" for place in ("frames", "tmp") for path in (self.home / place).glob("sparkfusion-*")]
        self.kill()
        if self._process.returncode and not already_dead:
            left.append(f"exit code {self._process.returncode}: {self._end_of_log()}")
        shutil.rmtree(self.home)
        return left

    def kill(self) -> None:
        """End everything that carries our mark, also what is no descendant any more."""
        while found := list(self.processes()):
            for process in found:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(found, 1)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.home):
                    yield process

    def _read_line(self, seconds: float) -> str:
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._input:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.send_signal(signal.SIGUSR1)  # it writes down where its threads are
                time.sleep(0.5)
                raise self._died(f"has not answered for {seconds} s")
            read = os.read(self._process.stdout.fileno(), 1 << 16)
            if not read:
                raise self._died("has ended")
            self._input += read
        line, self._input = self._input.split(b"\n", 1)
        return line.decode()

    def _died(self, what: str) -> ClusterDiedError:
        self.kill()
        return ClusterDiedError(f"the cluster's process {what}; the end of its log:\n{self._end_of_log()}")

    def _end_of_log(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_TAIL:]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[-200:]
    except psutil.Error:
        return "ended, not waited for"
