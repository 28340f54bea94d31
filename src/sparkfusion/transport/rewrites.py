"""Extensions of a worker: changes of every plan before it runs, by packages that are installed there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from sparkfusion.ids import TaskKey

REWRITES = "sparkfusion.plan_rewrites"


@dataclass(frozen=True)
class RewriteContext:
    """What a plan rewrite of an extension is told: the task, and the coordinator's `extensions`."""

    key: TaskKey
    extensions: dict[str, str]


PlanRewrite = Callable[[bytes, RewriteContext], bytes]
"""An extension's change of every plan before it runs; registered under the entry-point group `REWRITES`."""


def installed_rewrites() -> list[PlanRewrite]:
    return [each.load() for each in sorted(entry_points(group=REWRITES), key=lambda found: found.name)]
