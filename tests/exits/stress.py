"""`make stress-exit`: every way to end, many times, many at once, on a machine that is busy with exactly that.

A run is a fork of this process, which has imported everything and run nothing: it ends like any program, in a tenth of
the time. `--fresh` starts an interpreter for each instead.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import datafusion  # noqa: F401

import sparkfusion.cli.app
import sparkfusion.session.session  # noqa: F401
from tests.exits.cases import CASES, KINDS, Case, write_table
from tests.exits.targets import TARGETS, serve

_PATIENCE_SECONDS = 600.0
_TURN_SECONDS = 0.005
_SIGNAL_SECONDS = (0.05, 0.5)


class Forked(BaseException):
    """Raised in a child, to bring it to the end of this module."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self.program = program


@dataclass
class Run:
    """One program under way."""

    case: Case
    pid: int
    place: Path
    due: float
    unsent: list[int]
    signal_at: float | None = None

    def turn(self) -> int | None:
        """Its exit status, once it has one. Sends what is due."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if self.unsent and self.signal_at is None and (self.place / "started").exists():
            self.signal_at = time.monotonic() + random.uniform(*_SIGNAL_SECONDS)
        if self.unsent and self.signal_at is not None and time.monotonic() > self.signal_at:
            os.kill(self.pid, self.unsent.pop(0))
        if time.monotonic() > self.due:
            os.kill(self.pid, signal.SIGKILL)
            self.due += _PATIENCE_SECONDS
        return None

    def stderr(self) -> str:
        return (self.place / "stderr").read_text()


def start(case: Case, table: Path, place: Path, *, fresh: bool) -> Run:
    place.mkdir()
    pid = _start_fresh(case, table, place) if fresh else _fork(case, table, place)
    return Run(case, pid, place, time.monotonic() + _PATIENCE_SECONDS, list(case.signals))


def _start_fresh(case: Case, table: Path, place: Path) -> int:
    command = [sys.executable, "-c", case.program(), str(table), str(place / "started")]
    files = ((0, Path(os.devnull)), (1, place / "stdout"), (2, place / "stderr"))
    opened = [(os.POSIX_SPAWN_OPEN, number, str(file), os.O_CREAT | os.O_RDWR, 0o600) for number, file in files]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=opened)


def _fork(case: Case, table: Path, place: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(place / name, os.O_CREAT | os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["program", str(table), str(place / "started")]
    raise Forked(case.program())


def stress(
    cases: list[Case], runs: int, at_once: int, base: Path, *, seconds: float, fresh: bool
) -> Iterator[tuple[Case, int, str]]:
    """Each run's case, its exit status, and what it wrote to stderr."""
    waiting = [case for _ in range(runs) for case in cases]
    running: list[Run] = []
    number = 0
    until = time.monotonic() + seconds
    while waiting or running:
        while waiting and len(running) < at_once:
            number += 1
            running.append(start(waiting.pop(), base / "t", base / f"run-{number}", fresh=fresh))
        time.sleep(_TURN_SECONDS)
        if time.monotonic() > until:
            waiting.clear()
        for run in list(running):
            if (status := run.turn()) is not None:
                running.remove(run)
                stderr = run.stderr()
                shutil.rmtree(run.place)
                yield run.case, status, stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each case")
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no more after this time")
    parser.add_argument("--fresh", action="store_true", help="an interpreter for each run")
    parser.add_argument("--on", choices=TARGETS, default="local", help="what the sessions run on")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", default="", help="cases whose name holds this")
    chosen.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="cases of these names")
    chosen.add_argument("--kinds", action="store_const", const=KINDS, dest="cases", help="one case of each kind")
    arguments = parser.parse_args()
    named = [case for case in CASES if arguments.only in case.name and case.name in (arguments.cases or [case.name])]
    cases = [case for case in named if arguments.on == "local" or not case.here]
    ended: collections.Counter[str] = collections.Counter()
    wrong: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    base = Path(tempfile.mkdtemp(prefix="exits-"))
    write_table(base / "t")
    with serve(arguments.on, base / "worker"):
        for case, status, stderr in stress(
            cases, arguments.runs, arguments.at_once, base, seconds=arguments.minutes * 60, fresh=arguments.fresh
        ):
            ended[case.name] += 1
            fault = case.judge(status, stderr, alone=arguments.on != "spark")
            if fault is not None:
                wrong[case.name][fault] += 1
                if wrong[case.name][fault] == 1:
                    print(f"--- {case.name}: {fault}\n{stderr}", flush=True)
    shutil.rmtree(base)
    for case in cases:
        faults = ", ".join(f"{count} times {fault}" for fault, count in wrong[case.name].items())
        print(f"{ended[case.name]:5} times {case.name}: {faults or 'right'}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    try:
        code = main()
    except Forked as forked:
        program = forked.program
    else:
        sys.exit(code)
    # Outside of every handler: how this ends is what is looked at.
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})
