"""Progress as text: one line for a query, and short texts for each stage. Terminals and notebooks lay them out."""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.stage_progress import HEAD_STAGE, StageProgress

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class StageTexts:
    """The texts about a stage. A text is empty if there is nothing to show."""

    name: str
    doing: str
    tasks: str
    running: str
    rows: str
    bytes: str
    units: str
    failed: str
    left: str


def describe(state: ProgressState, now: float) -> str:
    """One line for the whole query.

    >>> describe(ProgressState(status="running", planned_stages=2, planned_tasks=8), 3.2)
    '3.2 s  stages 0/2  tasks 0/8  0 rows'
    """
    parts = [f"{state.elapsed(now):.1f} s"]
    if state.status == "planning":
        parts.append("planning")
    elif state.reason is not None or state.stages_total == 0:
        parts.append("single node")
    else:
        parts.append(f"stages {state.stages_done}/{state.stages_total}")
        parts.append(f"tasks {state.tasks_done}/{state.tasks_total}")
        parts.append(f"{state.rows:,} rows")
        if state.feeds:
            parts.append(_units(state.units_done, state.units_found, discovering=state.discovering))
        if (left := state.seconds_left(now)) is not None:
            parts.append(f"{show_seconds(left)} left")
    for count, what in ((state.failed_attempts, "failed"), (state.earlier_attempts, "repeated")):
        if count:
            parts.append(f"{count} {what} attempt{'s' if count > 1 else ''}")
    return "  ".join(parts)


def describe_stage_at(state: ProgressState, stage: StageProgress, now: float) -> StageTexts:
    """The texts for one stage."""
    feeds = state.feeds_of(stage)
    found, done = sum(feed.found for feed in feeds), sum(feed.done for feed in feeds)
    discovering = any(feed.discovering for feed in feeds)
    left = stage.seconds_left(now) if not feeds else None
    return StageTexts(
        name="head" if stage.stage == HEAD_STAGE else f"stage {stage.stage}",
        doing=stage.doing,
        tasks=f"{stage.done}/{stage.tasks} tasks",
        running=f"{stage.running} running" if stage.running else "",
        rows=f"{show_count(stage.rows)} rows" if stage.done else "",
        bytes=show_bytes(stage.bytes) if stage.done else "",
        units=_units(done, found, discovering=discovering) if feeds else "",
        failed=f"{stage.failed_attempts} failed" if stage.failed_attempts else "",
        left=f"{show_seconds(left)} left" if left is not None else "",
    )


def describe_rest(state: ProgressState, shown: int) -> str:
    """One line for the stages without a line of their own, if `shown` busy stages have one. Empty if there are none."""
    numbered = [stage for stage in state.stages.values() if stage.stage != HEAD_STAGE]
    counts = {status: sum(stage.status == status for stage in numbered) for status in ("waiting", "skipped")}
    busy = len(state.busy_stages)
    others = {"more running": busy - shown, "without a slot": len(state.running_stages) - busy}
    parts = [f"{count} {what}" for what, count in others.items() if count]
    parts += [f"{count} {status}" for status, count in counts.items() if count]
    return f"stages: {', '.join(parts)}" if parts else ""


def show_count(count: int) -> str:
    """
    >>> show_count(999_999), show_count(12_345_678), show_count(4_200_000_000)
    ('999,999', '12.3 M', '4.2 G')
    """
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1e9:.1f} G" if count >= 1_000_000_000 else f"{count / 1e6:.1f} M"


def show_bytes(size: float) -> str:
    """
    >>> show_bytes(0), show_bytes(1_536), show_bytes(2_500_000_000)
    ('0 B', '1.5 kB', '2.5 GB')
    """
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"


def show_seconds(seconds: float) -> str:
    """An estimated time, rounded.

    >>> show_seconds(0.4), show_seconds(42.4), show_seconds(200), show_seconds(9000)
    ('about 1 s', 'about 42 s', 'about 3 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _units(done: int, found: int, *, discovering: bool) -> str:
    return f"units {done:,}/{found:,}" + (", still discovering" if discovering else "")
