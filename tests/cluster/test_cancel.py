"""Cancelling in the middle: Spark's jobs end, and nothing of the query stays anywhere."""

from __future__ import annotations

import pytest

from tests.behaviour.probes import PROMPT
from tests.cluster.conftest import Run
from tests.cluster.experiment import Fault
from tests.cluster.tables import GROUPED, JOINED

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]

PLACES = {
    "in a leaf": ("mapped", GROUPED),
    "above a join, streamed to the reader": ("reduced", JOINED),
}


@pytest.mark.parametrize(("function", "query"), PLACES.values(), ids=PLACES)
def test_cancel_in_the_middle(run: Run, function: str, query: str) -> None:
    """Both executors are in a task that waits. That no job and no file is left is asserted for every query."""
    answer = run(query, {function: Fault("held")}, cancel_at=2)
    assert answer.error is not None
    assert answer.error.startswith("QueryCancelledError"), answer.describe()
    held = {call.attempt for call in answer.calls if call.faulty}
    assert {end.reason for end in answer.ended if end.attempt in held} == {"TaskKilled"}, answer.describe()
    assert held == {call.attempt for call in answer.calls if call.function == function}, answer.describe()
    assert answer.seconds_after_cancel is not None
    assert answer.seconds_after_cancel < PROMPT
