"""How much memory a process and its descendants hold at the most, sampled while a query runs."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psutil

from sparkfusion.exchange.store import SHARED_MEMORY

PAUSE = 0.1
REFRESH = 5
"""So many samples look at the same processes: to list all processes takes longer than to ask a few."""


class MemoryWatch:
    """Samples from entering the `with` until leaving it; `peak` is in bytes.

    Counts resident memory of every process below `pid`, and frames that sparkfusion keeps in memory-backed files. Pages
    that two processes share are counted twice.
    """

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._root = psutil.Process(pid)
        self._processes: list[psutil.Process] = []
        self._samples = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            with suppress(psutil.NoSuchProcess):
                self.peak = max(self.peak, self._sample())
            if self._ended.wait(PAUSE):
                return

    def _sample(self) -> int:
        if self._samples % REFRESH == 0:
            self._processes = [self._root, *self._root.children(recursive=True)]
        self._samples += 1
        return sum(_resident(each) + _frames(each) for each in self._processes)


def resident_below(pid: int) -> int:
    """Resident memory of a process and its descendants now; 0 if it has ended."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return sum(_resident(each) for each in (root, *root.children(recursive=True)))
    return 0


def is_memory_short() -> bool:
    """Whether less than a quarter of the machine's memory is available: a query of ten gigabytes may need that."""
    memory = psutil.virtual_memory()
    return bool(memory.available < memory.total // 4)


def _resident(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _frames(process: psutil.Process) -> int:
    return sum(_size(path) for found in SHARED_MEMORY.glob(f"sparkfusion-{process.pid}-*") for path in found.rglob("*"))


def _size(path: Path) -> int:
    with suppress(OSError):  # frames come and go
        return path.stat().st_blocks * 512
    return 0
