"""The report of a run, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.all.engines import BASE, BY_NAME
from benchmarks.all.result import BenchmarkRun, Measured, SuiteResult, Summary, summarize

TIMES = "\N{MULTIPLICATION SIGN}"
_NOTE = 200
"""Characters of an error that the report shows; the JSON has all of it."""


def render_report(run: BenchmarkRun, picture: str | None = None) -> str:
    """Machine, picture, and for each suite what came out over all queries and for each."""
    parts = ["# Benchmark", *facts_lines(run)]
    parts += [f"![Time of each query, by the time of single-node DataFusion]({picture})"] if picture else []
    parts += [render_suite(suite, run.engines) for suite in run.suites]
    return "\n\n".join(parts) + "\n"


def facts_lines(run: BenchmarkRun) -> list[str]:
    """Where, when and how the run was made."""
    facts = run.facts
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    cores = f"{facts['cores']} cores ({facts['processor']}), {gigabytes(facts['memory_bytes'])} of memory"
    lines = [
        f"{facts['date'][:10]}, {cores}, {facts['system']}. Commit {facts['commit'] or 'unknown'}; {versions}. Best of "
        f"{run.rounds} rounds, at most {run.limit_seconds:g} seconds for a query: `{run.command}`."
    ]
    if run.ended != "finished":
        lines.append("**The run was interrupted: the tables hold what was measured until then.**")
    return lines


def render_suite(suite: SuiteResult, engines: Sequence[str], level: int = 2) -> str:
    """One suite: the summary, and folded below it each query and each query without an equal answer."""
    seconds = f"seconds, and how many times as long as {BY_NAME[BASE].title}"
    parts = [
        f"{'#' * level} {suite.title}",
        summary_table([summarize(suite, engine) for engine in engines]),
        folded(f"Each query: {seconds}", query_table(suite, engines)),
    ]
    notes = list(_notes(suite))
    if notes:
        parts.append(folded(f"Without an equal answer: {len(notes)}", "\n".join(notes)))
    if suite.restarts:
        parts.append(f"Ended on the way because memory was short, and started again: {', '.join(suite.restarts)}.")
    return "\n\n".join(parts)


def folded(title: str, text: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"


def summary_table(summaries: Sequence[Summary]) -> str:
    """One line for each engine."""
    head = ("engine", "answered", "equal", "seconds", "times DataFusion", "geometric mean", "worst", "peak memory")
    rows = [(*head, "bytes between stages")]
    for each in summaries:
        worst = f"{times(each.worst[1])} (q{each.worst[0]})" if each.worst else "-"
        equal = f"{each.answered - each.different - each.undecided}"
        equal += f", {each.undecided} undecided" if each.undecided else ""
        equal += f", **{each.different} different**" if each.different else ""
        rows.append(
            (
                f"{BY_NAME[each.engine].title} (`{each.engine}`)",
                f"{each.answered} of {each.asked}",
                equal,
                f"{each.total:.1f}" if each.worst else "-",
                times(each.ratio),
                times(each.geometric_mean),
                worst,
                gigabytes(each.peak_bytes) if each.peak_bytes else "-",
                "-" if each.shuffled_bytes is None else gigabytes(each.shuffled_bytes),
            )
        )
    return table(rows)


def query_table(suite: SuiteResult, engines: Sequence[str]) -> str:
    """One line for each query."""
    rows = [("query", *(f"`{engine}`" for engine in engines))]
    ratios = {engine: suite.ratios(engine) for engine in engines}
    for query in suite.asked:
        cells = [_cell(suite.find(query, engine), ratios[engine].get(query)) for engine in engines]
        rows.append((f"q{query}", *cells))
    return table(rows)


def _cell(found: Measured | None, ratio: float | None) -> str:
    if found is None or (found.error is None and not found.seconds):
        return "not run"
    if not found.answered:
        return "**none**"
    if found.equal is False:
        return f"{found.best:.2f} **≠**"
    shown = f"{found.best:.2f}" + ("" if found.equal else "?")
    return shown if ratio is None or found.engine == BASE else f"{shown} ({times(ratio)})"


def _notes(suite: SuiteResult) -> Iterator[str]:
    """A line for each query without an answer, with a different one, or with one that could not be judged."""
    for each in suite.measured:
        title = BY_NAME[each.engine].title
        if each.error is not None:
            yield f"- q{each.query}, {title}: no answer. {_short(each.error)}"
        elif each.answered and each.equal is False:
            yield f"- q{each.query}, {title}: different answer, so its time does not count. {_short(each.note)}"
        elif each.answered and each.equal is None:
            yield f"- q{each.query}, {title}: it is undecided whether the answer is equal. {_short(each.note)}"


def _short(text: str) -> str:
    """One line that Markdown does not interpret."""
    line = " ".join(text.split()).replace("`", "'")
    return f"`{line[:_NOTE]}{'…' if len(line) > _NOTE else ''}`"


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}{TIMES}"


def gigabytes(size: float) -> str:
    """
    >>> gigabytes(1_530_000_000), gigabytes(4_200_000)
    ('1.5 GB', '4 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
