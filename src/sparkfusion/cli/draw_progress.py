"""Draw the progress of a query as lines of a terminal. Pure functions of state, size and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from sparkfusion.observe.progress import ProgressState
from sparkfusion.observe.progress_text import StageTexts, describe, describe_rest, describe_stage_at

_MOST_STAGES = 12
_FEWEST_WORDS = 24
"""The least width of a stage's description. In a narrower terminal, columns of figures are left out first."""
_MOST_WORDS = 72
_GAP = "  "
_BAR = 10
_BY_IMPORTANCE = ("tasks", "units", "left", "running", "failed", "rows", "bytes", "bar")
_FROM_LEFT = ("bar", "tasks", "running", "failed", "units", "rows", "bytes", "left")


@dataclass(frozen=True)
class Canvas:
    """The size of the terminal, and whether it shows Unicode. Without Unicode, bars are drawn with dots and hash
    signs."""

    width: int
    height: int
    has_unicode: bool = True


def draw(state: ProgressState, step: str, canvas: Canvas, now: float) -> list[str]:
    """The lines: first the query, then each busy stage, then a summary of the others. They are never wider than the
    terminal, and leave one of its lines free.

    >>> draw(ProgressState(), "single-node leg", Canvas(80, 24), 1.5)
    ['1.5 s  single-node leg']
    """
    if state.status == "planning":
        return [_fit(f"{state.elapsed(now):.1f} s  {step}", canvas.width, canvas)]
    first = _fit(describe(state, now), canvas.width, canvas)
    busy = state.busy_stages
    free = max(0, min(_MOST_STAGES, canvas.height - 3))  # the first line, the last one, and that of the cursor
    chosen = {stage.stage for stage in sorted(busy, key=lambda stage: stage.running == 0)[:free]}
    shown = [stage for stage in busy if stage.stage in chosen]
    texts = [describe_stage_at(state, stage, now) for stage in shown]
    bars = [_bar(stage.fraction, canvas) for stage in shown]
    lines = [first, *_stage_lines(texts, bars, canvas)]
    rest = describe_rest(state, len(shown))
    if rest and shown and len(lines) < canvas.height - 1:
        lines.append(_fit(f"{_GAP}{rest}", canvas.width, canvas))
    return lines


def _stage_lines(texts: Sequence[StageTexts], bars: Sequence[str], canvas: Canvas) -> list[str]:
    """The lines of the stages, with aligned columns. In a narrow terminal, the less important columns are left out of
    all lines."""
    if not texts:
        return []
    names = _column([text.name for text in texts])
    columns = {name: _column([getattr(text, name) for text in texts]) for name in _BY_IMPORTANCE if name != "bar"}
    columns["bar"] = list(bars)
    room = canvas.width - len(_GAP) - cell_len(names[0]) - len(_GAP) - _FEWEST_WORDS
    kept = set()
    for name in _BY_IMPORTANCE:
        needs = cell_len(columns[name][0]) + len(_GAP)
        if needs == len(_GAP):
            continue  # the column is empty for all stages
        if needs > room:
            break
        kept.add(name)
        room -= needs
    widest = max(cell_len(_clean(text.doing)) for text in texts)
    words = min(_FEWEST_WORDS + max(0, room), widest, _MOST_WORDS)
    lines = []
    for row, text in enumerate(texts):
        doing = set_cell_size(_fit(text.doing, words, canvas), words)
        parts = [names[row], doing, *(columns[name][row] for name in _FROM_LEFT if name in kept)]
        lines.append(_fit(_GAP + _GAP.join(parts).rstrip(), canvas.width, canvas))
    return lines


def _column(cells: Sequence[str]) -> list[str]:
    width = max(map(cell_len, cells))
    return [set_cell_size(each, width) for each in cells]


def _bar(fraction: float, canvas: Canvas) -> str:
    filled = int(max(0.0, min(1.0, fraction)) * _BAR)
    return "━" * filled + "╌" * (_BAR - filled) if canvas.has_unicode else "#" * filled + "-" * (_BAR - filled)


def _fit(text: str, width: int, canvas: Canvas) -> str:
    """The text, cut to this many cells; a text that was cut ends with dots."""
    text = _clean(text)
    if not canvas.has_unicode:
        text = text.encode("ascii", "replace").decode()
    if cell_len(text) <= width:
        return text
    dots = "…" if canvas.has_unicode else "..."
    return set_cell_size(text, max(0, width - len(dots))) + dots[: max(0, width)]


def _clean(text: str) -> str:
    """The text without characters that would move the cursor or change colours: names of files may contain any
    character."""
    return "".join(character if character.isprintable() else "?" for character in text)
