"""`python -m benchmarks.all --write-docs`: the last run goes to docs/benchmarks.md and its picture beside it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.all.markdown import facts_lines, render_suite
from benchmarks.all.picture import draw
from benchmarks.all.result import BenchmarkRun

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- the latest run: begin -->", "<!-- the latest run: end -->"


def write_docs(run: BenchmarkRun, page: Path = PAGE) -> None:
    """Replace what the page says of the latest run. Everything else on it stays."""
    picture = page.with_suffix(".svg")
    page.write_text(with_latest(page.read_text(), run, picture.name))
    picture.write_text(draw(run))
    print(f"written to {page} and {picture}")


def with_latest(text: str, run: BenchmarkRun, picture: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no place for the latest run, between {BEGIN} and {END}")
    parts = [*facts_lines(run), f"![Time of each query, by the time of single-node DataFusion]({picture})"]
    parts += [render_suite(suite, run.engines, level=3) for suite in run.suites]
    return f"{before}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{after}"
