"""Operators that the wire format changes or does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparkfusion.session.planner as planner_module
from sparkfusion.verify import Outcome, assert_distributed_eq, verify_query
from tests.behaviour.traps.conftest import LOST_GROUPING, Connected, assert_single_node

LOST_WINDOWS = {
    "FILTER": "select v, sum(v) filter (where s = 's1') over (partition by k order by v) as z from facts",
    "IGNORE NULLS": "select v, last_value(x) ignore nulls over (partition by k order by v) as z from facts",
}

LOST_LITERALS = {
    "a literal": "select v, arrow_cast(1.5, 'Float16') as z from facts",
    "a coerced literal": "select h + 1 as z from (select arrow_cast(v, 'Float16') as h from facts)",
    "a literal in a subquery": (
        "select v from facts where k in (select k from events where arrow_cast(v, 'Float16') < 9)"
    ),
}

SORTED = "(select * from facts order by v limit 150)"
REVERSED = {
    "above a sort": f"select v, lag(x) over (order by v desc) as z from {SORTED}",
    "nth_value": f"select v, nth_value(x, 2) over (order by v desc) as z from {SORTED}",
    "beside another window": (
        "select v, lead(x, 2) over (order by v) as z, sum(x) over (order by v desc rows 3 preceding) as w from facts"
    ),
}


@pytest.mark.parametrize("mark", LOST_WINDOWS)
def test_lost_window_options_run_on_a_single_node(connected: Connected, mark: str) -> None:
    session = connected()
    sql = LOST_WINDOWS[mark]
    assert_single_node(session.sql(sql), f"{mark} on a window function")
    session.sql(f"create view hidden as {sql}")
    assert_single_node(session.sql("select z, v from hidden where v > 10"), f"{mark} on a window function")
    in_subquery = f"select k from events where v in (select z from ({sql}))"
    assert_single_node(session.sql(in_subquery), f"{mark} on a window function")


def test_a_line_break_in_a_literal_does_not_hide_lost_options(connected: Connected) -> None:
    sql = (
        "select v, last_value(case when s = 'a\nb' then null else x end) ignore nulls "
        "over (partition by k order by v) as z from facts"
    )
    assert_single_node(connected().sql(sql), "IGNORE NULLS on a window function")


def test_lost_grouping_sets_run_on_a_single_node(connected: Connected) -> None:
    assert_single_node(connected().sql(LOST_GROUPING), "GROUPING SETS (())")


def test_lost_metadata_runs_on_a_single_node(connected: Connected) -> None:
    sql = "select v, arrow_metadata(with_metadata(v, 'unit', 'ms'), 'unit') as z from facts"
    assert_single_node(connected().sql(sql), "arrow_metadata reads column metadata, which is lost")


@pytest.mark.parametrize("place", LOST_LITERALS)
def test_lost_types_of_literals_run_on_a_single_node(connected: Connected, place: str) -> None:
    assert_single_node(
        connected().sql(LOST_LITERALS[place]), "the query has a Float16 literal; an encoded plan would make it Float32"
    )


def test_half_floats_that_are_no_literals_are_distributed(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select arrow_cast(v, 'Float16') as z, count(*) as n from facts group by 1")
    assert_distributed_eq(session, "select v, arrow_cast(null, 'Float16') as z from facts where s <> 'Float16'")


def test_options_that_survive_are_distributed(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select k, sum(v) filter (where s = 's1') as z from facts group by k")
    assert_distributed_eq(session, "select k, first_value(x order by v) ignore nulls as z from facts group by k")
    assert_distributed_eq(session, "select k, s, count(*) as n from facts group by grouping sets ((k), (s), ())")
    assert_distributed_eq(session, "select v, count(distinct s) over (partition by k order by v) as z from facts")


@pytest.mark.parametrize(
    "sql",
    [*LOST_WINDOWS.values(), LOST_GROUPING, LOST_LITERALS["a literal"]],
    ids=[*LOST_WINDOWS, "grouping sets", "a literal"],
)
def test_lost_options_without_handling_differ(connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.setattr(planner_module, "check_logical", lambda *args: None)
    monkeypatch.setattr("sparkfusion.plan.distribute.check_physical", lambda root: None)
    monkeypatch.setattr("sparkfusion.plan.functions.check_literals", lambda text: None)
    assert verify_query(connected(), sql).outcome is Outcome.WIRE_LOSS


@pytest.mark.parametrize("sql", REVERSED.values(), ids=REVERSED)
def test_reversed_windows_are_distributed(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)


@pytest.mark.parametrize("sql", REVERSED.values(), ids=REVERSED)
def test_reversed_windows_without_handling_differ(
    connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setattr(planner_module, "write_reversal", lambda root: False)
    assert verify_query(connected(), sql).outcome is Outcome.WIRE_LOSS


def test_what_cannot_be_encoded_runs_on_a_single_node(connected: Connected, files: Path) -> None:
    session = connected()
    recursive = (
        "with recursive r as (select min(v) as n from facts union all select n + 1 from r where n < 5) select n from r"
    )
    assert_single_node(session.sql(recursive), "RecursiveQueryExec cannot be encoded")
    schema = "select table_name from information_schema.tables where table_name = 'facts'"
    assert_single_node(session.sql(schema), "LazyMemTableExec cannot be encoded")
    import pyarrow.dataset as ds

    session.register_dataset("dataset", ds.dataset(str(files / "facts")))
    assert_single_node(session.sql("select sum(v) as total from dataset"), "DatasetExec cannot be encoded")


def test_plans_that_would_not_encode_are_not_made(connected: Connected) -> None:
    top_of_each = (
        "select v, k from (select v, k, row_number() over (partition by k order by v) r from facts) where r <= 2"
    )
    session = connected({"datafusion.optimizer.enable_piecewise_merge_join": True})
    assert_distributed_eq(session, top_of_each)
    assert_distributed_eq(session, "select e.v, f.v as w from events e join facts f on e.v < f.v")


def test_to_timestamp_in_a_session_with_a_time_zone(connected: Connected) -> None:
    session = connected({"datafusion.execution.time_zone": "+02:00"})
    text = "select to_timestamp((2000 + k)::varchar || '-01-01T00:00:00') as e, count(*) as n from facts group by 1"
    assert_single_node(session.sql(text), "loses the session's time zone")
