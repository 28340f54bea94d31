"""A benchmark as text: a line for each query, as soon as it is measured, and the totals at the end."""

from __future__ import annotations

from collections.abc import Iterator

from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, SPARK_SQL, BenchedQuery, BenchResult, Turns

_TITLES = {SINGLE_NODE: "single node", SPARK_SQL: "Spark SQL", OURS: "sparkfusion"}
_NAMES = {SINGLE_NODE: "single-node DataFusion", SPARK_SQL: "Spark SQL", OURS: "sparkfusion"}
_MOST_WORDS = 300


def describe_result(result: BenchResult) -> str:
    """The whole report."""
    lines = [describe_start(result), *(describe_query(result, query) for query in result.queries)]
    return "\n".join([*lines, *describe_end(result)])


def describe_start(result: BenchResult) -> str:
    """The title of the report, and the header of the columns."""
    rounds = f"best of {result.rounds} rounds" if result.rounds > 1 else "one round"
    title = f"TPC-H, scale factor {result.scale:g}, {result.place}; seconds, {rounds}"
    engines = "".join(f"{_TITLES[engine]:>13}" for engine in result.engines)
    ratios = "".join(f"{f'÷ {_TITLES[engine]}':>15}" for engine in _others(result))
    return f"{title}\n{'query':>5}{engines}{ratios}{'stages':>8}{'tasks':>7}  answers"


def describe_query(result: BenchResult, query: BenchedQuery) -> str:
    """The line of a query; errors and differences in lines below it."""
    seconds = "".join(f"{_cell(query.turns[engine].best):>13}" for engine in result.engines)
    ratios = "".join(f"{_cell(query.ratio(engine), 2):>15}" for engine in _others(result))
    shape = f"{query.stages or '-':>8}{query.tasks or '-':>7}"
    notes = [
        f"      {_NAMES[engine]}: {' '.join(words.split())[:_MOST_WORDS]}"
        for engine, turns in query.turns.items()
        if (words := turns.error or turns.note)
    ]
    return "\n".join([f"{f'q{query.query}':>5}{seconds}{ratios}{shape}  {_verdict(query)}", *notes])


def describe_end(result: BenchResult) -> Iterator[str]:
    """The totals over the measured queries."""
    totals = {engine: _total(result, engine) for engine in result.engines}
    compared = {engine: result.compare_with(engine) for engine in _others(result)}
    seconds = "".join(f"{_cell(totals[engine]):>13}" for engine in result.engines)
    if any(ratio is not None for ratio in compared.values()):
        shown = {engine: (None, None) if ratio is None else (ratio.total, ratio.geometric_mean)
                 for engine, ratio in compared.items()}  # fmt: skip
        yield f"{'total':>5}{seconds}{''.join(f'{_cell(total, 2):>15}' for total, _ in shown.values())}"
        blank = " " * 13 * len(result.engines)
        yield f"{'mean':>5}{blank}{''.join(f'{_cell(mean, 2):>15}' for _, mean in shown.values())}  (geometric)"
    for engine, ratio in compared.items():
        if ratio is None:
            yield f"There is no query that both sparkfusion and {_NAMES[engine]} answered."
        else:
            of = "" if ratio.queries == len(result.asked) else f" in {ratio.queries} of {len(result.asked)} queries"
            yield f"sparkfusion takes {ratio.total:.2f} times as long as {_NAMES[engine]}{of}."
    alone = sum(query.not_distributed is not None for query in result.queries)
    if alone:
        yield (
            f"Not distributed: {alone} of {len(result.queries)} queries. They ran on a single node, mostly because "
            "they read too little; a larger scale factor distributes more of them."
        )
    if result.queries:
        yield f"Answers: {'all equal' if result.is_right else 'NOT ALL EQUAL, or not all there: see above'}."
    if not result.is_complete:
        yield f"Stopped after {len(result.queries)} of {len(result.asked)} queries."


def _others(result: BenchResult) -> list[str]:
    return [engine for engine in result.engines if engine != OURS]


def _total(result: BenchResult, engine: str) -> float | None:
    """The seconds of all queries; None if one has no time, because a sum over fewer queries would look better."""
    found = [query.turns[engine].best for query in result.queries]
    return None if None in found else sum(each or 0.0 for each in found)


def _cell(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _verdict(query: BenchedQuery) -> str:
    return ", ".join(dict.fromkeys(_word(turns) for turns in query.turns.values() if _word(turns))) or "equal"


def _word(turns: Turns) -> str:
    if turns.error is not None:
        return "FAILED"
    return {True: "", None: "undecided", False: "DIFFERENT"}[turns.equal]
