"""Messages that were changed at random are answered with an error that says so, or are orders like any other."""

from __future__ import annotations

import math
from collections import Counter

from sparkfusion.ids import TaskKey
from tests.fuzz.messages import answer, messages, tally
from tests.fuzz.worker import HUNG, trial
from tests.transport.plans import order_of_sql


def test_a_mutated_message_has_an_answer() -> None:
    """`make fuzz-messages` tries many more; whatever else is raised comes out here."""
    found = Counter(map(answer, messages(seed=1, count=3_000)))
    assert found["refused, ProtocolError"] > 1_000
    assert found["passes"] > 100


def test_a_mutated_order_that_passes_the_checks_does_not_end_the_worker() -> None:
    """This process is the worker, with one slot and one child."""
    right = order_of_sql("select 1 as x", TaskKey("q", 1, 0), "here")
    with trial() as worker:
        found = tally(messages(seed=2, count=300), worker.answer, math.inf)
        assert found["ran"] > 5
        assert found["UserError"] > 0
        assert found[HUNG] == 0
        assert worker.answer(right) == "ran"
        assert worker.left() == []
