"""Extensions of a worker: packages that are installed there may change every plan before it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from sparkfusion.errors import SparkfusionError, UserError, WireFormatError, classify, first_words
from sparkfusion.ids import TaskKey
from sparkfusion.plan.wire import decode

REWRITES = "sparkfusion.plan_rewrites"


@dataclass(frozen=True)
class RewriteContext:
    """What a rewrite of an extension gets to know: the task, and the coordinator's `extensions`."""

    key: TaskKey
    extensions: dict[str, str]


PlanRewrite = Callable[[bytes, RewriteContext], bytes]
"""An extension's change of every plan before it runs; registered under the entry-point group `REWRITES`."""


@dataclass(frozen=True)
class NamedRewrite:
    """A rewrite, and its name in its package."""

    name: str
    change: PlanRewrite

    def __call__(self, plan: bytes, context: RewriteContext) -> bytes:
        """The plan as the extension changed it. An error of ours that the extension raises is passed on unchanged."""
        try:
            changed = self.change(plan, context)
        except SparkfusionError:
            raise
        except (Exception, SystemExit) as error:
            words = f"{type(error).__name__}: {first_words(error)}"
            raise type(classify(error))(f"plan rewrite {self.name!r} failed: {words}") from error
        if not isinstance(changed, bytes):
            raise UserError(f"plan rewrite {self.name!r} returned a {type(changed).__name__} instead of plan bytes")
        try:
            decode(changed)
        except WireFormatError as error:
            raise UserError(f"plan rewrite {self.name!r}: {error.message}") from error
        return changed


def installed_rewrites() -> list[NamedRewrite]:
    """The rewrites of all installed packages, sorted by name."""
    found = []
    for each in _entry_points(_state_of_path()):
        try:
            found.append(NamedRewrite(each.name, each.load()))
        except Exception as error:
            raise UserError(
                f"plan rewrite {each.name!r} ({each.value}) cannot be loaded: {first_words(error)}"
            ) from error
    return found


@lru_cache(maxsize=1)
def _entry_points(state: object) -> list[EntryPoint]:
    """Every session asks for them. To find them takes 20 ms with 140 packages, because the metadata of each is read."""
    return sorted(entry_points(group=REWRITES), key=lambda point: point.name)


def _state_of_path() -> tuple[tuple[str, int], ...]:
    """Changes when a package is installed or removed: a directory of packages is written to then."""
    return tuple((path, Path(path).stat().st_mtime_ns) for path in sys.path if Path(path).is_dir())


def apply_rewrites(plan: bytes, rewrites: Sequence[NamedRewrite], context: RewriteContext) -> bytes:
    return reduce(lambda changed, rewrite: rewrite(changed, context), rewrites, plan)
