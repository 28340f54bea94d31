"""The figures of docs/tuning.md: each advice gives the answer of what it replaces, and the page has all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sparkfusion
from benchmarks import tuning

PAGE = Path(__file__).parents[3] / "docs" / "tuning.md"


@pytest.fixture(scope="module")
def session() -> Iterator[sparkfusion.Session]:
    with tuning.prepared_session(2_000) as session:
        yield session


@pytest.mark.parametrize("advice", tuning.ADVICE, ids=lambda advice: advice.name)
def test_both_ways_give_rows_and_the_same_ones(session: sparkfusion.Session, advice: tuning.Advice) -> None:
    assert min(tuning.measure(session, advice, 1)) > 0
    assert advice.after(session).num_rows


def test_a_way_with_another_answer_is_not_measured(session: sparkfusion.Session) -> None:
    wrong = tuning.Advice("wrong", lambda _: pa.table({"n": [1]}), lambda _: pa.table({"n": [2]}))
    with pytest.raises(AssertionError, match="wrong: the answers differ"):
        tuning.measure(session, wrong, 1)


def test_the_page_has_a_figure_for_each() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines()]
    assert [advice.name for advice in tuning.ADVICE if advice.name not in rows] == []
