"""Queries that DataFusion's own defaults answer wrongly are answered right, distributed or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion import Session
from sparkfusion.session.upstream import DYNAMIC_FILTERS, GUARDED_DEFAULTS
from sparkfusion.verify import verify_query
from tests.behaviour.parts import DISTRIBUTED
from tests.conftest import Connect
from tests.suites.upstream import AGGREGATES, DOUBLED_NAMES, Case, write_aggregates, write_doubled_names

pytestmark = pytest.mark.any_width

ON_ONE_NODE = {"sparkfusion.enabled": False, "datafusion.execution.target_partitions": 2}


@pytest.fixture(params=[ON_ONE_NODE, DISTRIBUTED], ids=["single node", "distributed"])
def guarded(connect: Connect, tmp_path: Path, request: pytest.FixtureRequest) -> Session:
    session = connect(request.param)
    session.register_parquet("t", write_aggregates(tmp_path))
    for name, path in write_doubled_names(tmp_path).items():
        session.register_parquet(name, path)
    return session


def test_aggregates_see_all_rows(guarded: Session) -> None:
    """On a single node DataFusion's default settings drop the last file's rows (datafusion#24816)."""
    for _ in range(3):
        (row,) = guarded.sql(AGGREGATES.sql).to_pylist()
        assert row["m"] == AGGREGATES.right


@pytest.mark.parametrize("case", DOUBLED_NAMES, ids=lambda case: case.name)
def test_joins_of_columns_with_one_name_find_their_rows(guarded: Session, case: Case) -> None:
    """On a single node DataFusion's default settings find none (datafusion#25262, #25264)."""
    assert guarded.sql(case.sql).collect().num_rows == case.right


def test_verify_compares_with_the_right_answer(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_aggregates(tmp_path))
    assert all(verify_query(session, AGGREGATES.sql).passed for _ in range(3))


def test_user_who_sets_the_option_gets_it(session: Session) -> None:
    for name, default in GUARDED_DEFAULTS.items():
        assert session.config[name] == default
        session.sql(f"set {name} = true")
        assert session.config.datafusion_options()[name] == "true"
        session.sql(f"reset {name}")
        assert session.config[name] == default


def test_option_that_sets_the_guarded_ones(session: Session) -> None:
    session.sql(f"set {DYNAMIC_FILTERS} = true")
    assert {session.config[name] for name in GUARDED_DEFAULTS} == {"true"}
    del session.config[DYNAMIC_FILTERS]
    assert {name: session.config[name] for name in GUARDED_DEFAULTS} == GUARDED_DEFAULTS
