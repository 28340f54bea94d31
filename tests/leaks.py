"""What a test may leave behind: nothing. Snapshots of processes, threads and our files, and their difference.

Used by the autouse fixtures in conftest.py; plain functions, so that the check itself can be tested.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 40.0
"""Seconds that something which is just ending gets. Only paid when something is left."""

FILE_PREFIX = "sparkfusion-"

# Python's own helpers: one for each process, they stay until it ends.
_known_processes: tuple[str, ...] = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
# A worker's own processes for tasks come and go, and end with the worker.
TASK_PROCESS = "sparkfusion.transport.process.child"
# Native threads get a dummy when they call Python; it goes with the thread, which is not ours to end.
_known_threads: tuple[str, ...] = ("pytest_timeout", "Dummy-")
# What a failed verification writes is there to be looked at.
_KNOWN_FILES = ("sparkfusion-reproducers",)
# Directories in which what has such a name is ours.
_watched: list[tuple[Path, str]] = []


@dataclass(frozen=True)
class Process:
    """A process below this one. A later one with the same id has another start."""

    pid: int
    started: bytes
    parent: int = field(compare=False)

    @property
    def command(self) -> str:
        line = _read(f"/proc/{self.pid}/cmdline")
        return os.fsdecode(line).replace("\0", " ").strip() or "ended, not waited for"


@dataclass(frozen=True)
class Snapshot:
    """Everything alive at one moment."""

    processes: frozenset[Process]
    threads: frozenset[threading.Thread]
    files: frozenset[Path]

    def since(self, before: Snapshot) -> list[str]:
        """What is here and was not there before, each in words."""
        return [
            *(_describe_process(process) for process in self.processes - before.processes),
            *(_describe_thread(thread) for thread in self.threads - before.threads),
            *(f"file {path}" for path in sorted(self.files - before.files)),
        ]


def take() -> Snapshot:
    """Look around now. Takes well under a millisecond while there are no child processes."""
    threads = frozenset(thread for thread in threading.enumerate() if not _is_known_thread(thread))
    return Snapshot(_children(), threads, _files())


def since(before: Snapshot) -> list[str]:
    """What was left since `before`, after giving it a moment to go away."""
    deadline = time.monotonic() + PATIENCE
    pause = 0.001
    while left := take().since(before):
        if time.monotonic() > deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return []


@contextmanager
def known_processes(*commands: str) -> Iterator[None]:
    """Let processes come and go whose command line holds one of these."""
    global _known_processes  # noqa: PLW0603
    before = _known_processes
    _known_processes = (*before, *commands)
    try:
        yield
    finally:
        _known_processes = before


@contextmanager
def known_threads(*names: str) -> Iterator[None]:
    """Let threads come and go whose names begin like this."""
    global _known_threads  # noqa: PLW0603
    before = _known_threads
    _known_threads = (*before, *names)
    try:
        yield
    finally:
        _known_threads = before


@contextmanager
def watched(*places: tuple[Path, str]) -> Iterator[None]:
    """Count what has such a name in these directories as files of ours."""
    _watched.extend(places)
    try:
        yield
    finally:  # in any order: what a module watches may end before what the run watches, and have begun before it
        for place in places:
            _watched.remove(place)


def _is_known_thread(thread: threading.Thread) -> bool:
    """Threads in which py4j runs functions for Spark's driver (foreachBatch) stay as long as the driver."""
    target = getattr(thread, "_target", None)
    return thread.name.startswith(_known_threads) or str(getattr(target, "__module__", "")).startswith("py4j.")


def _children() -> frozenset[Process]:
    try:
        # Asks the kernel whether there is any child at all; listing them means reading all of /proc.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    return frozenset(child for child in _descendants(os.getpid()) if not _is_known(child))


def _descendants(ancestor: int) -> Iterator[Process]:
    """Processes below this one, by one look at each. Every test asks twice; psutil takes twice as long."""
    by_parent: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (process := _read_process(name)) is not None:
            by_parent.setdefault(process.parent, []).append(process)
    waiting = [ancestor]
    while waiting:
        found = by_parent.get(waiting.pop(), [])
        waiting += [each.pid for each in found]
        yield from found


def _read_process(pid: str) -> Process | None:
    stat = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()  # the name before it may hold anything
    return Process(int(pid), started=stat[19], parent=int(stat[1])) if stat else None


def _read(path: str) -> bytes:
    """A file of /proc; nothing if the process has ended. A file object takes five times as long."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(opened, 1 << 16)
    except ProcessLookupError:
        return b""
    finally:
        os.close(opened)


def _is_known(process: Process) -> bool:
    command = process.command
    if TASK_PROCESS in command and process.parent != os.getpid():
        return True
    return any(name in command for name in _known_processes)


def _describe_process(process: Process) -> str:
    return f"process {process.pid} ({process.command})"


def _describe_thread(thread: threading.Thread) -> str:
    return f"{'daemon ' if thread.daemon else ''}thread {thread.name!r}"


def _files() -> frozenset[Path]:
    """Our files in the temporary directory, which belongs to this run alone, in watched ones, and ours in /dev/shm.

    What another process leaves in /dev/shm cannot be told from another run's. A store has a directory in both places,
    so a process of ours that dies is found by the other one.
    """
    named = _named(FILE_PREFIX, tempfile.gettempdir()) + _named(f"{FILE_PREFIX}{os.getpid()}-", "/dev/shm")
    return frozenset(named + [path for directory, pattern in _watched for path in directory.glob(pattern)])


def _named(prefix: str, directory: str) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    except FileNotFoundError:
        return []
    return [Path(directory, name) for name in names if name not in _KNOWN_FILES]
