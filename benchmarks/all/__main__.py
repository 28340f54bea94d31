"""`make bench-all`: TPC-H and TPC-DS on every engine in turn, in one run, over the same files, answers compared.

    make bench-all                                                    # TPC-H at scale 1 and 10, TPC-DS at scale 1
    make bench-all SCALES=tpch:0.1 ENGINES=local,duckdb QUERIES=1,6
    make bench-all ENGINES=all                                        # with Sail, which is installed for it
    python -m benchmarks.all --write-docs                             # the last run goes to docs/benchmarks.md

Each query runs `--rounds` times on all engines in turn and the best time of each counts. Ctrl-C ends everything, and
what was measured is written. Results go to `benchmarks/results/all.json`, `all.md` and `all.svg`. docs/benchmarks.md
explains what is measured and how.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.all.docs import write_docs
from benchmarks.all.engines import ENGINES, Engine, choose, processes_of
from benchmarks.all.markdown import render_report
from benchmarks.all.measure import SuiteRun, engine_processes
from benchmarks.all.picture import draw
from benchmarks.all.result import BenchmarkRun, SuiteResult
from benchmarks.all.sail_environment import PROCESSES, prepare_sail
from benchmarks.record import RESULTS, machine_facts, write_json
from sparkfusion.bench.tpc import SUITES
from sparkfusion.errors import UserError

NAME = "all"
SCALES = "tpch:1,tpch:10,tpcds:1"


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse_arguments(arguments)
    if chosen.write_docs:
        write_docs(BenchmarkRun.read(chosen.results / f"{NAME}.json"))
        return 0
    command = shlex.join(["python", "-m", "benchmarks.all", *(sys.argv[1:] if arguments is None else arguments)])
    engines = chosen.engines
    run = BenchmarkRun(command, chosen.rounds, chosen.limit, machine_facts(), [engine.name for engine in engines])
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        pythons = sail_python(engines)
        for suite, scale in chosen.scales:
            measure_suite(run, suite, scale, engines, chosen.queries, pythons)
        run.ended = "finished"
    except KeyboardInterrupt:
        run.ended = "interrupted"
        print("\ninterrupted", flush=True)
    finally:
        signal.signal(signal.SIGTERM, before)
        write(run, chosen.results)
    return 0 if run.ended == "finished" else 130


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--scales", type=parse_scales, default=SCALES, help=f"suites and scale factors ({SCALES})")
    add("--engines", type=parse_engines, default="", help=f"of {', '.join(each.name for each in ENGINES)}; or all")
    add("--rounds", type=int, default=2, help="the best of so many rounds counts (2)")
    add("--queries", default="", help="numbers, separated by commas; all if not given")
    add("--limit", type=float, default=300.0, help="seconds for one query on one engine (300)")
    add("--results", type=Path, default=RESULTS, help="where results are written")
    add("--write-docs", action="store_true", help="write the last results to docs/benchmarks.md, and run nothing")
    chosen = parser.parse_args(arguments)
    try:
        for suite, _ in chosen.scales:
            SUITES[suite].choose(chosen.queries)
    except UserError as error:
        parser.error(f"--queries {chosen.queries}: {error}")
    return chosen


def parse_scales(text: str) -> list[tuple[str, float]]:
    """Suites with their scales: `tpch:1,tpcds:0.1`. A number alone is a scale of TPC-H."""
    found = []
    for each in text.split(","):
        suite, _, scale = each.strip().rpartition(":")
        if (suite or "tpch") not in SUITES:
            raise argparse.ArgumentTypeError(f"{each!r}: the suites are {', '.join(SUITES)}, as in {SCALES}")
        found.append((suite or "tpch", float(scale)))
    return found


def parse_engines(text: str) -> list[Engine]:
    try:
        return choose(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def sail_python(engines: Sequence[Engine]) -> dict[str, Path]:
    """The Python for each process that does not run in ours."""
    wanted = PROCESSES.intersection(processes_of(engines))
    if not wanted:
        return {}
    try:
        python = prepare_sail()
    except OSError as error:  # its queries count as not answered
        print(error, flush=True)
        python = Path("Sail is not installed")
    return dict.fromkeys(wanted, python)


def measure_suite(
    run: BenchmarkRun, name: str, scale: float, engines: Sequence[Engine], numbers: str, pythons: dict[str, Path]
) -> None:
    suite = SUITES[name]
    queries = suite.choose(numbers)
    data = suite.prepare(scale)
    result = SuiteResult(name, scale)
    run.suites.append(result)
    with (
        tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as made,
        engine_processes(engines, data, Path(made), pythons) as processes,
    ):
        suite_run = SuiteRun(result, data, engines, processes, say)
        suite_run.start(run.limit_seconds)
        for process in processes.values():
            run.facts["versions"] |= process.versions
        for number, text in queries:
            suite_run.measure(number, text, run.rounds, run.limit_seconds)


def say(text: str) -> None:
    print(text, end="", flush=True)


def write(run: BenchmarkRun, directory: Path) -> None:
    """Everything as JSON, a report to read, and a picture."""
    write_json(NAME, run.to_json(), directory)
    (directory / f"{NAME}.md").write_text(render_report(run, picture=f"{NAME}.svg"))
    (directory / f"{NAME}.svg").write_text(draw(run))
    print(f"the report is {directory / f'{NAME}.md'}, with a picture beside it", flush=True)


if __name__ == "__main__":
    sys.exit(main())
