"""What tests of this folder assert of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from tests.behaviour.parts import TOTAL
from tests.cluster.experiment import Answer
from tests.cluster.tables import SUM, is_ordered, single_node_rows


def assert_single_node_answer(answer: Answer, sql: str, tables: Mapping[str, str]) -> None:
    """Exactly the rows of DataFusion alone, duplicates counted, in its order if the query has one."""
    assert answer.error is None, answer.describe()
    found, expected = answer.rows, single_node_rows(sql, tables)
    if not is_ordered(sql):
        found, expected = sorted(found), sorted(expected)
    assert found == expected, answer.describe()


def assert_random_rows_add_up(answer: Answer) -> None:
    """Every row of the table is in one bucket: had two attempts put it into two, sums would not be right."""
    assert answer.error is None, answer.describe()
    assert (sum(n for _, n, _ in answer.rows), sum(s for _, _, s in answer.rows)) == (TOTAL, SUM), answer.describe()


def assert_harmed_once(answer: Answer, function: str, reason: str) -> None:
    """The function did its harm in one attempt. Spark counted that, or a copy ended earlier, on a busy machine."""
    harmed = [call for call in answer.calls if call.faulty]
    assert [call.function for call in harmed] == [function], answer.describe()
    (end,) = (end for end in answer.ended if end.attempt == harmed[0].attempt)
    copies = [copy for copy in answer.ended if copy.speculative and (copy.stage, copy.task) == (end.stage, end.task)]
    assert end.reason == reason or (end.reason == "TaskKilled" and copies), answer.describe()
