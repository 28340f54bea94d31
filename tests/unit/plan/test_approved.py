"""Plans stay as they were approved; `python -m tests.unit.plan.approve` approves what they are now."""

from __future__ import annotations

import pytest

from tests.unit.plan.approve import APPROVED, QUERIES, explain_all


@pytest.fixture(scope="module")
def explained(private_temporary_directory: None) -> dict[str, str]:
    return explain_all()


@pytest.mark.parametrize("name", QUERIES)
def test_plan_is_the_approved_one(explained: dict[str, str], name: str) -> None:
    assert explained[name] == (APPROVED / f"{name}.txt").read_text()


def test_nothing_is_approved_that_no_query_has() -> None:
    assert sorted(path.stem for path in APPROVED.iterdir()) == sorted(QUERIES)
