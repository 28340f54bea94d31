"""What processes hold at one moment, and whether that grew."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

SLACK = {"megabytes": 0.05, "threads": 0.25, "objects": 0.01}
"""Growth that is none, as a share: the allocator keeps some memory, and some threads are just ending."""
WARM_UP = 12
"""Rounds in which processes may still grow: each has an allocator and caches of its own, which fill up."""
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Held:
    """What there is of the processes of a session.

    Attributes:
        files: entries of the temporary directory, and of memory that acts as one.
        threads: without those of DataFusion's runtime.
        runtime: threads of DataFusion's runtime. It starts one for each file that it reads at the same time, also for
            spilled rows, and ends those that had nothing to do for ten seconds. Each has an allocator of its own.
        objects: of Python, in the session's own process.
    """

    files: int
    megabytes: float
    threads: int
    runtime: int
    descriptors: int
    objects: int

    @classmethod
    def now(cls, directory: Path, processes: Sequence[psutil.Process]) -> Held:
        gc.collect()
        objects = len(gc.get_objects())
        everybody = {each for process in processes for each in (process, *process.children(recursive=True))}
        return cls(
            _entries(directory)
            + sum(_entries(found) for found in _SHARED_MEMORY.glob(_OWN) if _is_of(found, everybody)),
            sum(_ask(each, lambda each: each.memory_info().rss) for each in everybody) / 1e6,
            sum(_ask(each, lambda each: len(_threads(each)) - _threads(each).count(_RUNTIME)) for each in everybody),
            sum(_ask(each, lambda each: _threads(each).count(_RUNTIME)) for each in everybody),
            sum(_ask(each, psutil.Process.num_fds) for each in everybody),
            objects,
        )


_OWN = "sparkfusion-*"
_RUNTIME = "tokio-rt-worker"


def _is_of(path: Path, processes: set[psutil.Process]) -> bool:
    return any(path.name.startswith(f"sparkfusion-{each.pid}-") for each in processes)


def _entries(directory: Path) -> int:
    return sum(len(names) + len(files) for _, names, files in os.walk(directory))


def _threads(process: psutil.Process) -> list[str]:
    """The names of a process's threads."""
    names = []
    for thread in Path(f"/proc/{process.pid}/task").glob("*/comm"):
        with suppress(OSError):  # it has ended since
            names.append(thread.read_text().strip())
    return names


def _ask(process: psutil.Process, question: Callable[[psutil.Process], int]) -> int:
    with suppress(psutil.NoSuchProcess):
        return question(process)
    return 0


def growths(seen: Sequence[Held]) -> dict[str, tuple[float, float]]:
    """What there was early and late: in the first half of the rounds after the warm-up, and in the second.

    The least of each half counts: what is kept is in all of its rounds, what a query still holds is not. Empty if there
    are too few rounds to tell.
    """
    warm = seen[WARM_UP:]
    if len(warm) < WARM_UP:
        return {}
    early, late = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    return {field.name: (_least(early, field.name), _least(late, field.name)) for field in fields(Held)}


def grown(ours: Sequence[Held], plain: Sequence[Held]) -> dict[str, tuple[float, float]]:
    """What grew in our session, and by more than it did in plain DataFusion. Memory may grow with the threads of
    DataFusion's runtime, whose number nobody can limit; they are not judged."""
    usual = growths(plain) if plain else {}
    found = {}
    seen = growths(ours)
    for name, (early, late) in seen.items():
        before, after = usual.get(name, (1.0, 1.0))
        allowed = max(1.0 + SLACK.get(name, 0.0), after / before if name in SLACK else 1.0)
        if name == "megabytes":
            few, many = seen["runtime"]
            allowed = max(allowed, many / few if few else 1.0)
        if name != "runtime" and late > early * allowed:
            found[name] = (early, late)
    return found


def _least(some: Sequence[Held], name: str) -> float:
    return min(float(getattr(each, name)) for each in some)
