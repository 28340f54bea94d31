"""The picture of a run: how each query's time compares with single-node DataFusion, on a logarithmic scale.

One panel for each suite, one row for each engine, one dot for each query. It is plain SVG, with colours for light and
for dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log

from benchmarks.all.engines import BASE, BY_NAME
from benchmarks.all.markdown import TIMES
from benchmarks.all.result import BenchmarkRun, SuiteResult, summarize

WIDTH = 1000
LEFT, RIGHT = 300, 815
"""Where the axis begins and ends; engines are named on its left, numbers are on its right."""
MEAN, COUNTED = 905, 984
"""Where the columns on the right end: the geometric mean, and how many queries have a dot."""
ROW, HEAD, FOOT = 38, 64, 46
DOT = 3.6
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_LANES = (0, -1, 1, -2, 2)
"""Dots that would cover each other are moved up and down by so many diameters."""

LIGHT = {
    "page": "#ffffff", "band": "#f6f8fa", "grid": "#d8dee4", "text": "#1f2328", "quiet": "#59636e",
    "ours": "#0969da", "other": "#bc4c00",
}  # fmt: skip
DARK = {
    "page": "#0d1117", "band": "#161b22", "grid": "#30363d", "text": "#e6edf3", "quiet": "#9198a1",
    "ours": "#58a6ff", "other": "#f0883e",
}  # fmt: skip
SHAPES = """
text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
text.title { font-size: 16px; font-weight: 600; }
text.quiet { font-size: 11px; }
text.ours, text.other { font-weight: 600; }
.grid { stroke-width: 1; }
.one { stroke-width: 1.5; }
.dot { fill-opacity: 0.55; }
.mean { stroke-width: 3; stroke-linecap: round; }
.halo { stroke-width: 5; stroke-linecap: round; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
"""


def colours(palette: Mapping[str, str]) -> str:
    """The rules that differ between light and dark pages. Without CSS variables, which some viewers do not know."""
    return "\n".join(
        [
            f"rect.page {{ fill: {palette['page']}; }}",
            f"rect.band {{ fill: {palette['band']}; }}",
            f"line.grid {{ stroke: {palette['grid']}; }}",
            f"line.halo {{ stroke: {palette['page']}; }}",
            f"line.one {{ stroke: {palette['text']}; }}",
            f"text {{ fill: {palette['text']}; }}",
            f"text.quiet {{ fill: {palette['quiet']}; }}",
            *(
                f".{name}, text.{name} {{ fill: {palette[name]}; }} line.{name} {{ stroke: {palette[name]}; }}"
                for name in ("ours", "other")
            ),
        ]
    )


STYLE = f"{SHAPES}{colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{colours(DARK)}\n}}\n"


def draw(run: BenchmarkRun) -> str:
    """The whole picture as SVG."""
    engines = [engine for engine in run.engines if engine != BASE]
    suites = [suite for suite in run.suites if suite.asked]
    height = 20 + len(suites) * (HEAD + ROW * len(engines) + FOOT)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="Time of each query, by the time of single-node DataFusion">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
    ]
    for position, suite in enumerate(suites):
        lines += draw_panel(suite, engines, 10 + position * (HEAD + ROW * len(engines) + FOOT))
    return "\n".join([*lines, "</svg>"]) + "\n"


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from LEFT to RIGHT."""

    low: float
    high: float

    def x(self, ratio: float) -> float:
        return LEFT + (RIGHT - LEFT) * log(ratio / self.low) / log(self.high / self.low)

    @property
    def ticks(self) -> list[float]:
        return [tick for tick in _TICKS if self.low <= tick <= self.high]

    @classmethod
    def around(cls, ratios: Sequence[float]) -> Axis:
        """An axis that holds all of them, and 1, with some room at both ends."""
        return cls(min(0.8, *ratios) / 1.15, max(1.25, *ratios) * 1.15) if ratios else cls(0.5, 2)


def draw_panel(suite: SuiteResult, engines: Sequence[str], top: float) -> Iterator[str]:
    """One suite: title, axis, and a row for each engine."""
    axis = Axis.around([ratio for engine in engines for ratio in suite.ratios(engine).values()])
    first, last = top + HEAD, top + HEAD + ROW * len(engines)
    yield f'<text class="title" x="16" y="{top + 22}">{escape(suite.title)}</text>'
    yield (
        f'<text class="quiet" x="16" y="{top + 40}">times single-node DataFusion; one dot for each query, '
        "the bar is the geometric mean</text>"
    )
    yield f'<text class="quiet end" x="{MEAN}" y="{first - 8}">mean</text>'
    yield f'<text class="quiet end" x="{COUNTED}" y="{first - 8}">counted</text>'
    for number in range(0, len(engines), 2):
        yield f'<rect class="band" x="0" y="{first + number * ROW}" width="{WIDTH}" height="{ROW}"/>'
    for tick in axis.ticks:
        x = axis.x(tick)
        yield f'<line class="{"one" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{first}" y2="{last}"/>'
        yield f'<text class="quiet middle" x="{x:.1f}" y="{last + 16}">{tick:g}{TIMES}</text>'
    yield f'<text class="quiet end" x="{axis.x(1) - 8:.1f}" y="{first - 8}">← faster</text>'
    yield f'<text class="quiet" x="{axis.x(1) + 8:.1f}" y="{first - 8}">slower →</text>'
    for number, engine in enumerate(engines):
        yield from draw_row(suite, engine, axis, first + (number + 0.5) * ROW)


def draw_row(suite: SuiteResult, engine: str, axis: Axis, y: float) -> Iterator[str]:
    """One engine: its dots, its mean, and how many queries count."""
    summary = summarize(suite, engine)
    colour = "ours" if BY_NAME[engine].ours else "other"
    yield f'<text x="16" y="{y + 4}">{escape(BY_NAME[engine].title)}</text>'
    ratios = suite.ratios(engine)
    for query, x, lane in spread({query: axis.x(ratio) for query, ratio in ratios.items()}):
        yield (
            f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y + lane * 2 * DOT:.1f}" r="{DOT}">'
            f"<title>q{query}: {ratios[query]:.2f}{TIMES}</title></circle>"
        )
    if ratios and summary.geometric_mean is not None:
        x = axis.x(summary.geometric_mean)
        for layer in ("halo", f"mean {colour}"):
            yield f'<line class="{layer}" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 14}" y2="{y + 14}"/>'
        yield f'<text class="end {colour}" x="{MEAN}" y="{y + 4}">{summary.geometric_mean:.2f}{TIMES}</text>'
        yield from _name_extremes(ratios, axis, y)
    yield f'<text class="end" x="{COUNTED}" y="{y + 4}">{len(ratios)} of {summary.asked}</text>'


def _name_extremes(ratios: dict[int, float], axis: Axis, y: float) -> Iterator[str]:
    if len(ratios) < 3:
        return
    fastest, slowest = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    yield f'<text class="quiet end" x="{axis.x(ratios[fastest]) - 7:.1f}" y="{y + 4}">q{fastest}</text>'
    yield f'<text class="quiet" x="{axis.x(ratios[slowest]) + 7:.1f}" y="{y + 4}">q{slowest}</text>'


def spread(places: dict[int, float]) -> Iterator[tuple[int, float, int]]:
    """Each query with its place and a lane in which it covers no other, as far as there are lanes."""
    ends = dict.fromkeys(_LANES, float("-inf"))
    for query, x in sorted(places.items(), key=lambda pair: pair[1]):
        lane = next((lane for lane in _LANES if ends[lane] + 2 * DOT <= x), min(_LANES, key=lambda lane: ends[lane]))
        ends[lane] = x
        yield query, x, lane
