"""Long chains of operators: answered, or refused with the limit. The process never ends by them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparkfusion.session.chains import computes_long_chain, longest_chains

PROGRAM = """
import datafusion
{before}
import sparkfusion

QUICK = {{"sparkfusion.enabled": False, "datafusion.optimizer.max_passes": 0}}
with sparkfusion.connect(config=QUICK) as session:
    session.from_pydict({{"k": [1, 2, 3]}}, name="t")
    try:
        print(session.sql({sql}).to_pylist()[:1])
    except sparkfusion.PlanTooDeepError as error:
        print(error)
"""
STARTED_BEFORE = 'datafusion.SessionContext().sql("select 1")'
ANDS = '"select count(*) as n from t where " + " and ".join(f"k <> {{i}}" for i in range({count}))'
ORS = '"select count(*) as n from t where " + " or ".join(f"k = {{i}}" for i in range({count}))'
SUMS = '"select k" + "+1" * {count} + " as n from t"'
UNIONS = '" union all ".join(["select 1 as n"] * {count})'


def answer(sql: str, before: str = "") -> str:
    program = PROGRAM.format(sql=sql, before=before)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_chain_that_overflows_the_usual_stack_is_answered() -> None:
    assert answer(ANDS.format(count=3_200)) == "[{'n': 0}]\n"


@pytest.mark.parametrize("chain", [ANDS, *(pytest.param(chain, marks=pytest.mark.long) for chain in (ORS, SUMS))])
def test_a_chain_that_overflows_every_stack_is_refused(chain: str) -> None:
    told = answer(chain.format(count=20_000))
    assert "a chain of about 20,000 operators" in told.replace("19,999", "20,000")
    assert "more than 5,000" in told
    assert "IN (…)" in told


def test_unions_that_overflow_the_stack_are_refused() -> None:
    assert "combines 5,000 queries by UNION, and more than 2,000" in answer(UNIONS.format(count=5_000))


def test_where_datafusion_has_started_its_threads_before_the_limit_is_lower() -> None:
    assert "more than 2,000" in answer(ANDS.format(count=3_200), STARTED_BEFORE)


def test_a_plan_that_computes_a_long_chain_is_not_planned_for_tasks() -> None:
    assert computes_long_chain("Projection: t.k" + " + Int64(1)" * 301 + " AS s\n  TableScan: t")
    assert not computes_long_chain("Projection: " + ", ".join(["t.k + Int64(1)"] * 400) + "\n  TableScan: t")
    assert not computes_long_chain("Filter: " + " OR ".join(["t.k = Int64(1)"] * 400) + "\n  TableScan: t")
    assert not computes_long_chain('Filter: t.k = Utf8("' + " + " * 400 + '")\n  TableScan: t')


def test_only_a_chain_counts() -> None:
    listed = ", ".join(f"(-{number} + 1, 'a and b')" for number in range(9_000))
    assert longest_chains(f"insert into t values {listed}") == (2, 0)
    columns = ", ".join(f"case when a > {number} and b < 2 then a - 1 else b * 2 end" for number in range(9_000))
    assert longest_chains(f"select {columns} from t -- + + +")[0] <= 3
    nested = "(a + " * 40 + "b" + " - 1 - 2)" * 40
    assert 120 <= longest_chains(f"select {nested} from t")[0] <= 160
