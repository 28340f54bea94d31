"""Without any fault: the single-node answer, computed by both executors."""

from __future__ import annotations

import pytest

from tests.cluster.checks import assert_single_node_answer
from tests.cluster.conftest import Run
from tests.cluster.tables import GROUPED_TWICE, JOINED

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]  # starting the cluster has a limit of its own

QUERIES = {"grouped twice": GROUPED_TWICE, "joined": JOINED}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_single_node_answer_from_both_executors(run: Run, tables: dict[str, str], query: str) -> None:
    answer = run(query)
    assert_single_node_answer(answer, query, tables)
    assert len(answer.executors) == 2
    for function in ("mapped", "reduced"):  # of the first stages, and of one that reads their frames
        assert answer.executors_of(function) == set(answer.executors), answer.describe()
    assert not answer.failures
    assert not answer.recomputed_inputs
    assert answer.earlier_attempts <= answer.speculative_copies, answer.describe()
