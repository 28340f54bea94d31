"""The report of `make bench-all`: what counts, what does not, and that nothing is left out silently."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.all.docs import BEGIN, END, PAGE, with_latest, write_docs
from benchmarks.all.engines import BASE, ENGINES, choose
from benchmarks.all.markdown import query_table, render_report, render_suite
from benchmarks.all.picture import LEFT, RIGHT, Axis, draw, spread
from benchmarks.all.result import BenchmarkRun, Measured, SuiteResult, summarize
from sparkfusion.bench.bench_result import geometric_mean

FACTS = {
    "date": "2026-01-02T03:04:05+00:00",
    "cores": 2,
    "memory_bytes": 16_000_000_000,
    "processor": "a processor",
    "system": "Linux",
    "commit": "abc",
    "versions": {"datafusion": "55.0.0"},
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def suite() -> SuiteResult:
    """Three queries: `local` answers all, `duckdb` differs once, `polars` fails once and is undecided once."""
    measured = [
        Measured(1, BASE, [2.0, 1.0], equal=True, peak_bytes=100),
        Measured(2, BASE, [4.0, 5.0], equal=True, peak_bytes=300),
        Measured(3, BASE, [1.0], equal=True, peak_bytes=200),
        Measured(1, "local", [3.0, 2.0], equal=True, peak_bytes=10, shuffled_bytes=5),
        Measured(2, "local", [2.0, 2.5], equal=True, peak_bytes=30, shuffled_bytes=7),
        Measured(3, "local", [4.0], equal=True, peak_bytes=20, shuffled_bytes=0),
        Measured(1, "duckdb", [0.5], equal=True),
        Measured(2, "duckdb", [0.001], equal=False, note="expected 3 rows, got 2"),
        Measured(3, "duckdb", [0.5], equal=True),
        Measured(1, "polars", [0.1], error="no answer within 300 s"),
        Measured(2, "polars", [], error="SQLInterfaceError: no `rollup`"),
        Measured(3, "polars", [2.0], equal=None, note="several right answers"),
    ]
    return SuiteResult("tpch", 10, [1, 2, 3], measured)


@pytest.fixture
def run(suite: SuiteResult) -> BenchmarkRun:
    return BenchmarkRun("python -m benchmarks.all", 2, 300, FACTS, [BASE, "local", "duckdb", "polars"], [suite])


def test_the_best_round_counts_against_the_best_of_datafusion(suite: SuiteResult) -> None:
    assert suite.ratios("local") == {1: 2.0, 2: 0.5, 3: 4.0}
    summary = summarize(suite, "local")
    assert (summary.answered, summary.asked, summary.different) == (3, 3, 0)
    assert (summary.total, summary.base_total) == (8.0, 6.0)
    assert summary.geometric_mean == pytest.approx(4.0 ** (1 / 3))
    assert summary.worst == (3, 4.0)
    assert (summary.peak_bytes, summary.shuffled_bytes) == (30, 12)


def test_a_different_answer_is_answered_and_does_not_count(suite: SuiteResult) -> None:
    summary = summarize(suite, "duckdb")
    assert (summary.answered, summary.different) == (3, 1)
    assert suite.ratios("duckdb") == {1: 0.5, 3: 0.5}
    assert (summary.total, summary.base_total) == (1.0, 2.0)  # DataFusion's for the same queries
    assert summary.shuffled_bytes is None


def test_an_engine_that_failed_in_one_round_did_not_answer(suite: SuiteResult) -> None:
    summary = summarize(suite, "polars")
    assert (summary.answered, summary.asked, summary.undecided) == (1, 3, 1)
    assert suite.ratios("polars") == {3: 2.0}


def test_a_query_that_datafusion_did_not_answer_has_no_ratio(suite: SuiteResult) -> None:
    found = suite.find(1, BASE)
    assert found is not None
    found.error = "out of memory"
    assert 1 not in suite.ratios("local")
    assert summarize(suite, "local").answered == 3


def test_an_engine_without_answers_has_no_numbers(suite: SuiteResult) -> None:
    for each in suite.of("polars"):
        each.error = "it did not start"
    summary = summarize(suite, "polars")
    assert (summary.answered, summary.ratio, summary.geometric_mean, summary.worst) == (0, None, None, None)
    assert "| Polars SQL (`polars`) | 0 of 3 | 0 | - | - | - | - | - | - |" in render_suite(suite, ["polars"])
    assert geometric_mean([]) is None


def test_every_query_is_in_the_table_and_every_gap_is_explained(run: BenchmarkRun) -> None:
    text = render_report(run)
    assert "| q1 | 1.00 | 2.00 (2.00\N{MULTIPLICATION SIGN}) | 0.50 (0.50\N{MULTIPLICATION SIGN}) | **none** |" in text
    assert "| q2 | 4.00 | 2.00 (0.50\N{MULTIPLICATION SIGN}) | 0.00 **≠** | **none** |" in text
    assert "2.00? (2.00\N{MULTIPLICATION SIGN}) |" in text
    assert "- q1, Polars SQL: no answer. `no answer within 300 s`" in text
    assert "- q2, Polars SQL: no answer. `SQLInterfaceError: no 'rollup'`" in text
    assert "- q2, DuckDB: different answer, so its time does not count. `expected 3 rows, got 2`" in text
    assert "- q3, Polars SQL: it is undecided whether the answer is equal. `several right answers`" in text
    assert "Without an equal answer: 4" in text
    assert "2 cores" in text
    assert "`python -m benchmarks.all`" in text


def test_restarts_are_told(suite: SuiteResult) -> None:
    assert "memory was short" not in render_suite(suite, [BASE])
    suite.restarts.append("spark")
    assert "because memory was short, and started again: spark." in render_suite(suite, [BASE])


def test_an_interrupted_run_says_so(run: BenchmarkRun) -> None:
    assert "interrupted" in render_report(run)
    run.ended = "finished"
    assert "interrupted" not in render_report(run)


def test_an_engine_that_was_not_asked_yet_is_not_taken_for_one_that_failed(suite: SuiteResult) -> None:
    suite.asked.append(4)
    suite.measured.append(Measured(4, BASE, [1.0], equal=True))
    assert query_table(suite, [BASE, "local"]).splitlines()[-1] == "| q4 | 1.00 | not run |"


def test_a_run_is_read_as_it_was_written(run: BenchmarkRun, tmp_path: Path) -> None:
    import json

    path = tmp_path / "all.json"
    path.write_text(json.dumps(run.to_json()))
    assert BenchmarkRun.read(path) == run


def test_the_picture_has_a_dot_for_each_query_that_counts(run: BenchmarkRun) -> None:
    root = ElementTree.fromstring(draw(run))
    dots = list(root.iter(f"{SVG}circle"))
    titles = [title.text for dot in dots for title in dot.iter(f"{SVG}title")]
    assert titles == [
        f"q{query}: {ratio:.2f}\N{MULTIPLICATION SIGN}"
        for query, ratio in ((2, 0.5), (1, 2), (3, 4), (1, 0.5), (3, 0.5), (3, 2))
    ]
    assert all(LEFT < float(dot.attrib["cx"]) < RIGHT for dot in dots)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert [text for text in texts if text and text.endswith(" of 3")] == ["3 of 3", "2 of 3", "1 of 3"]
    assert "TPC-H, scale factor 10" in texts


def test_the_axis_is_logarithmic_and_holds_all_ratios() -> None:
    axis = Axis.around([0.25, 4.0])
    assert axis.x(1) - axis.x(0.25) == pytest.approx(axis.x(4) - axis.x(1))
    assert LEFT < axis.x(0.25) < axis.x(4.0) < RIGHT
    assert axis.ticks == [0.5, 1, 2]
    assert Axis.around([]).ticks == [0.5, 1, 2]


def test_dots_at_the_same_place_do_not_cover_each_other() -> None:
    placed = list(spread({1: 100.0, 2: 100.5, 3: 101.0, 4: 300.0}))
    assert len({lane for _, x, lane in placed if x < 200}) == 3
    assert placed[-1] == (4, 300.0, 0)


def test_the_picture_is_drawn_without_a_single_answer(run: BenchmarkRun) -> None:
    run.suites = [SuiteResult("tpcds", 1, [1], [Measured(1, BASE, error="out of memory")])]
    root = ElementTree.fromstring(draw(run))
    assert not list(root.iter(f"{SVG}circle"))
    assert [text.text for text in root.iter(f"{SVG}text")].count("0 of 1") == 3


def test_the_page_keeps_all_but_the_latest_run(run: BenchmarkRun, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nan earlier run\n{END}\nafter\n")
    write_docs(run, page)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "an earlier run" not in text
    assert "### TPC-H, scale factor 10\n" in text
    assert "](page.svg)" in text
    assert (tmp_path / "page.svg").read_text() == draw(run)
    assert with_latest(text, run, "page.svg") == text
    with pytest.raises(ValueError, match="no place for the latest run"):
        with_latest("a page", run, "page.svg")


def test_the_page_of_the_docs_has_a_place_and_names_every_engine() -> None:
    text = PAGE.read_text()
    assert text.index(BEGIN) < text.index(END)
    explained = text[: text.index(BEGIN)]
    assert [engine.name for engine in ENGINES if f"| `{engine.name}` |" not in explained] == []


def test_datafusion_always_runs() -> None:
    assert [engine.name for engine in choose("duckdb")] == [BASE, "duckdb"]
    assert len(choose("all")) == len(ENGINES)
    assert {"sail", "sail-cluster"} == {engine.name for engine in ENGINES} - {engine.name for engine in choose("")}
    with pytest.raises(ValueError, match="there is no engine 'oracle'; the engines are datafusion, "):
        choose("oracle")
