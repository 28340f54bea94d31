from __future__ import annotations

import pytest

from benchmarks.demo import compact, verdict

NUMBERS = "ran as 4 tasks: 1,216 rows, 57,072 bytes, 142.4 ms, skew 1.3"


@pytest.mark.parametrize("keys", [2, 12])
def test_the_title_of_a_stage_is_whole_and_fits(keys: int) -> None:
    columns = ", ".join(f"column_{number}" for number in range(keys))
    title = f"┌ Stage 3 ── 4 tasks ── shuffle by [{columns}] into 4"
    lines = compact(f"{title} ── {NUMBERS}\n│   FilterExec", width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join([lines[0], *(line.removeprefix("│ ") for line in lines[1:-2])]) == title
    assert lines[-2:] == [f"│ {NUMBERS}", "│   FilterExec"]


def test_a_title_that_fits_stays_on_its_line() -> None:
    line = f"┌ Stage 2 ── 4 tasks ── broadcast ── {NUMBERS}"
    assert compact(line, width=118) == line


def test_a_long_operator_keeps_its_numbers() -> None:
    shown = compact(f"│   AggregateExec: {'x' * 100}  (10 rows, 0.1 ms)", width=60)
    assert len(shown) == 60
    assert shown.endswith("…  (10 rows, 0.1 ms)")


@pytest.mark.parametrize(
    ("single", "distributed", "begins", "ends"),
    [
        (0.1, 0.2, "distributed, the query took 2.0 times as long", "tasks cost more than they gain"),
        (0.2, 0.1, "distributed, the query took 0.5 times as long", "0.5 times as long"),
        (0.1, 0.101, "both took about the same time", "about the same time"),
    ],
)
def test_the_verdict_follows_from_the_times(single: float, distributed: float, begins: str, ends: str) -> None:
    said = verdict(single, distributed)
    assert (said.startswith(begins), said.endswith(ends)) == (True, True)
