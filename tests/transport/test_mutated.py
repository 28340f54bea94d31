"""Messages that were changed at random are answered with an error that says so, or are orders like any other."""

from __future__ import annotations

from collections import Counter

from tests.fuzz.messages import answer, messages


def test_a_mutated_message_has_an_answer() -> None:
    """`make fuzz-messages` tries many more; whatever else is raised comes out here."""
    tally = Counter(map(answer, messages(seed=1, count=3_000)))
    assert tally["ProtocolError"] > 1_000
    assert tally["runs"] > 100
