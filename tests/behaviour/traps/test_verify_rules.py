"""What `verify` takes for proof, and which differences it lets pass."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.errors import VerificationError
from sparkfusion.verify import Outcome, assert_distributed_eq, compare_tables, verify_query
from tests.behaviour.traps.conftest import LOST_GROUPING, Connected


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) as n from facts",  # a constant from statistics
        "select 1 as one",
        LOST_GROUPING,
    ],
)
def test_a_query_that_was_not_distributed_is_no_proof(connected: Connected, sql: str) -> None:
    session = connected()
    result = verify_query(session, sql)
    assert result.outcome is Outcome.NOT_DISTRIBUTED
    assert result.reason
    with pytest.raises(VerificationError, match="not distributed"):
        assert_distributed_eq(session, sql)


def test_harmless_differences_pass_and_others_do_not(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select s, v from facts order by s")  # ties
    assert_distributed_eq(session, "select s, v from facts where v > 3 order by s limit 30")  # ties at the limit
    assert_distributed_eq(session, "select s, sum(x * 0.1) as z, avg(x) as y from facts group by s")  # float sums
    once_each = pa.table({"a": [1, 1, 2]})
    assert not compare_tables(once_each, pa.table({"a": [1, 2, 2]})).equal  # the same set of rows
    assert not compare_tables(once_each, pa.table({"a": pa.array([1, 1, 2], pa.int32())})).equal
    assert compare_tables(once_each, pa.table({"a": [2, 1, 1]})).equal
