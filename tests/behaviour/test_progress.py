"""Progress tells the same of a query wherever its tasks run."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import sparkfusion
from sparkfusion import Session
from sparkfusion.observe.progress import Progress, ProgressState
from sparkfusion.observe.progress_text import describe_stage_at
from tests.behaviour.parts import DISTRIBUTED, PARTS, write_parts
from tests.behaviour.probes import PATIENCE
from tests.runners import LOCAL, Runner
from tests.suites.feeds import feed_numbers

pytestmark = pytest.mark.sample("local", "flight", "spark-local")  # Spark reports its tasks in another way

QUERY = "select k, count(*) as n from t group by k order by n, k"


def figures(state: ProgressState) -> list[tuple[object, ...]]:
    """What does not depend on time, of each stage."""
    return [
        (stage.stage, stage.status, stage.doing, stage.done, stage.tasks, stage.rows)
        for _, stage in sorted(state.stages.items())
    ]


def test_progress_is_the_same_on_every_runner(session: Session, runner: Runner, tmp_path: Path) -> None:
    progress = Progress()
    session.subscribe(progress)
    session.sql(QUERY).collect()
    state = progress.state
    assert (state.status, state.stages_done, state.stages_total) == ("finished", 2, 2)
    assert state.tasks_done == state.tasks_total >= PARTS + 1
    assert state.tasks_running == 0
    assert state.stages[1].doing == "read parts; aggregate"
    assert state.stages[2].doing == "read stage 1; aggregate, sort"
    assert (state.stages[1].rows, state.stages[2].rows) == (7 * PARTS, 7)
    assert state.stages[1].bytes > 0
    if runner.name != LOCAL:
        in_process = Progress()
        with sparkfusion.connect(config={**DISTRIBUTED, "sparkfusion.task_cores": 1}) as here:
            here.register_parquet("t", tmp_path / "parts")
            here.subscribe(in_process)
            here.sql(QUERY).collect()
        assert figures(state) == figures(in_process.state)


def test_a_function_is_told_how_far_a_query_is(session: Session) -> None:
    seen: list[ProgressState] = []
    end = session.on_progress(seen.append, every=0.0)
    session.sql(QUERY).collect()
    assert seen[0].status == "running"
    assert seen[-1].status == "finished"
    assert seen[-1].stages_done == 2
    done = [state.tasks_done for state in seen]
    assert done == sorted(done)
    end()
    count = len(seen)
    session.sql(QUERY).collect()
    assert len(seen) == count


def test_a_function_that_is_told_may_run_a_query(session: Session) -> None:
    rows: list[int] = []
    seen: list[ProgressState] = []

    def ask(state: ProgressState) -> None:
        seen.append(state)
        if state.stages_done == 1 and not rows:
            rows.append(0)
            rows.append(session.sql(QUERY).collect().num_rows)

    session.on_progress(ask)
    asking = threading.Thread(target=session.sql(QUERY).collect, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    assert not asking.is_alive()
    assert rows == [0, 7]
    assert [state.status for state in seen].count("finished") == 2


@pytest.mark.sample("local", "flight")
def test_units_of_a_feed_are_those_of_its_stage(session: Session) -> None:
    feed_numbers(session, "pages", range(6), tasks=2)
    progress = Progress()
    session.subscribe(progress)
    session.sql("select unit, count(*) from pages group by unit").collect()
    state = progress.state
    assert state.stages[1].doing == "read feed pages; aggregate"
    assert describe_stage_at(state, state.stages[1], now=0.0).units == "units 6/6"
    assert describe_stage_at(state, state.stages[2], now=0.0).units == ""


@pytest.mark.runners(LOCAL, reason="the plan of one task for all is that of one machine")
def test_the_whole_query_in_one_task_is_one_line(tmp_path: Path) -> None:
    progress = Progress()
    with sparkfusion.connect(config=DISTRIBUTED) as session:
        session.register_parquet("t", write_parts(tmp_path))
        session.subscribe(progress)
        session.sql(QUERY).collect()
    assert progress.state.stages[1].doing == "the whole query: read parts; aggregate, sort, merge"
