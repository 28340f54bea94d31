"""Stages that give no rows for certain, and what only they read, are not run; the answer stays the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, StageFinished, StageSkipped, StageStarted, TaskFailed
from sparkfusion.observe.progress import Progress
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, record, write_parts
from tests.conftest import Connect

SKIP = "sparkfusion.skip_empty_stages"
SHUFFLED = {
    **DISTRIBUTED,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.adaptive_broadcast_bytes": -1,  # the probe side waits for the build side
    "sparkfusion.key_set_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
GROUPED = "select n.k, count(*) as c from none n join t on n.v = t.v group by n.k order by n.k"
SKIPPED = {
    "inner": "select n.v, t.k from none n join t on n.v = t.v",
    "inner, grouped": GROUPED,
    "semi": "select v, k from t where exists (select 1 from none n where n.v = t.v)",
    "two joins": "select n.v, t.k from none n join t on n.v = t.v join t as r on r.k = t.k",
    "window": "select n.v, sum(t.k) over (partition by n.k) as s from none n join t on n.v = t.v",
    "distinct": "select distinct t.k from none n join t on n.v = t.v",
    "a grouped subquery": "select t.v from (select k, max(v) as v from none group by k) n join t on n.v = t.v",
    "sorted": "select n.v, t.k from none n join t on n.v = t.v order by t.k limit 3",
}
KEPT = {
    "left": "select n.v, t.v as w from t left join none n on n.v = t.v",
    "full": "select n.v, t.v as w from t full join none n on n.v = t.v",
    "anti": "select v from t where not exists (select 1 from none n where n.v = t.v)",
    "mark": "select v from t where exists (select 1 from none n where n.v = t.v) or k = 3",
    "not in": "select v from t where k not in (select k from none)",
    "union": "select v from none group by v union all select k from t group by k",
    "an aggregate of all rows": "select count(*) as n, max(t.k) as m from none n join t on n.v = t.v",
    "grouping sets": (
        "select n.k, t.part, count(*) as c from none n join t on n.v = t.v group by grouping sets ((n.k), (t.part), ())"
    ),
    "a count of groups": "select count(*) as n from (select n.k from none n join t on n.v = t.v group by n.k)",
    "an outer join above": (
        "select t.v, x.k from t left join (select n.k, n.v from none n join t on n.v = t.v) x on x.v = t.v"
    ),
}


@pytest.fixture(scope="module")
def nothing(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The table `t` of `parts`, and a view `none` of it that has no rows, which only its execution shows."""
    session = connect_shared(SHUFFLED)
    session.register_parquet("t", write_parts(tmp_path_factory.mktemp("none"), rows=50))
    session.sql("create view none as select * from t where v % 50 = 51 - k * 0")
    return session


def skipped(events: list[Event]) -> list[int]:
    return [event.stage for event in events if isinstance(event, StageSkipped)]


@pytest.mark.parametrize("sql", SKIPPED.values(), ids=SKIPPED)
def test_what_gives_no_rows_is_skipped(nothing: Session, sql: str) -> None:
    nothing.config[SKIP] = True
    events = record(nothing)
    found = assert_distributed_like_single_node(nothing.sql(sql))
    assert found.num_rows == 0
    assert skipped(events)
    assert not set(skipped(events)) & {event.stage for event in events if isinstance(event, StageFinished)}
    assert not any(isinstance(event, TaskFailed) for event in events)


@pytest.mark.sample("local")
@pytest.mark.parametrize("sql", KEPT.values(), ids=KEPT)
def test_what_may_give_rows_gives_them(nothing: Session, sql: str) -> None:
    nothing.config[SKIP] = True
    found = assert_distributed_like_single_node(nothing.sql(sql))
    assert found.num_rows > 0


def test_switched_off_every_stage_runs(nothing: Session) -> None:
    nothing.config[SKIP] = False
    events = record(nothing)
    assert_distributed_like_single_node(nothing.sql(GROUPED))
    assert skipped(events) == []


def test_a_side_that_runs_already_is_stopped(nothing: Session) -> None:
    """Whether it is done before that is a matter of time. The answer, and that no task counts as failed, are not."""
    nothing.config[SKIP] = True
    nothing.config["sparkfusion.adaptive_broadcast_bytes"] = 0
    try:
        events = record(nothing)
        assert_distributed_like_single_node(nothing.sql(GROUPED))
        assert skipped(events)
        assert not any(isinstance(event, TaskFailed) for event in events)
    finally:
        nothing.config["sparkfusion.adaptive_broadcast_bytes"] = -1


def test_explain_shows_what_was_skipped_and_why(nothing: Session) -> None:
    nothing.config[SKIP] = True
    shown = nothing.sql(GROUPED).explain_text(analyze=True)
    assert "decided: skipped: it gives no rows, because stage 1 gave none" in shown
    assert "decided: skipped: no stage that reads its output can return rows" in shown
    assert "decided" not in nothing.sql(GROUPED).explain_text()


def test_progress_does_not_wait_for_skipped_stages(nothing: Session) -> None:
    nothing.config[SKIP] = True
    progress, events = Progress(), record(nothing)
    nothing.subscribe(progress)
    nothing.sql(GROUPED).collect()
    assert progress.state.status == "finished"
    assert progress.state.stages_done == progress.state.stages_total
    assert progress.state.tasks_done == progress.state.tasks_total
    over = {stage.stage for stage in progress.state.stages.values() if stage.status == "skipped"}
    assert over == set(skipped(events))
    assert not over & {event.stage for event in events if isinstance(event, StageStarted)}


def test_a_write_without_rows_leaves_a_file_with_the_columns(nothing: Session, tmp_path: Path) -> None:
    written = {}
    for value in (True, False):
        nothing.config[SKIP] = value
        nothing.sql(SKIPPED["inner"]).write_parquet(tmp_path / str(value))
        written[value] = pq.read_table(tmp_path / str(value))
    assert written[True].schema == written[False].schema
    assert written[True].num_rows == 0
