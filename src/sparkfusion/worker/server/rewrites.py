"""Extensions of a worker: packages that are installed there may change every plan before it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import entry_points

from sparkfusion.errors import SparkfusionError, UserError, WireFormatError, classify, first_words
from sparkfusion.ids import TaskKey
from sparkfusion.plan.wire import decode

REWRITES = "sparkfusion.plan_rewrites"


@dataclass(frozen=True)
class RewriteContext:
    """What a rewrite of an extension is told: the task, and the coordinator's `extensions`."""

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
    for each in sorted(entry_points(group=REWRITES), key=lambda point: point.name):
        try:
            found.append(NamedRewrite(each.name, each.load()))
        except Exception as error:
            raise UserError(
                f"plan rewrite {each.name!r} ({each.value}) cannot be loaded: {first_words(error)}"
            ) from error
    return found


def apply_rewrites(plan: bytes, rewrites: Sequence[NamedRewrite], context: RewriteContext) -> bytes:
    return reduce(lambda changed, rewrite: rewrite(changed, context), rewrites, plan)
