"""A partition with most of the rows is divided among several tasks; the answer stays the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, SkewDecided, StageStarted
from sparkfusion.observe.progress import Progress
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, record, write_keyed
from tests.conftest import Connect
from tests.runners import Runner

SKEW = "sparkfusion.skew_bytes"
ALWAYS, NEVER = -1, 0
SHUFFLED = {
    **DISTRIBUTED,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.adaptive_broadcast_bytes": 0,
    "sparkfusion.key_set_bytes": 0,
    "sparkfusion.frame_compression": "none",
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
INNER = "select s.v, l.v as w from small s join large l on s.k = l.k"
SPLIT_JOINS = {
    "inner": INNER,
    "inner with a condition": "select s.v, l.v as w from small s join large l on s.k = l.k and s.v < l.v % 7",
    "right": "select s.v, l.v as w, l.k from small s right join large l on s.k = l.k",
    "semi": "select v, k from large l where exists (select 1 from small s where s.k = l.k)",
    "anti": "select v, k from large l where not exists (select 1 from small s where s.k = l.k)",
    "mark": "select v from large l where exists (select 1 from small s where s.k = l.k) or v % 5 = 0",
    "nulls match": "select s.v, l.v as w from small s join large l on s.k is not distinct from l.k",
    "below an aggregate": "select s.name, sum(l.v) as t from small s join large l on s.k = l.k group by s.name",
    "below an aggregate of all rows": "select count(*) as n, sum(l.v) as t from small s join large l on s.k = l.k",
    "below grouping sets": (
        "select s.name, s.v, count(*) as n from small s join large l on s.k = l.k "
        "group by grouping sets ((s.name), (s.v), ())"
    ),
    "below a sort": "select s.v, l.v as w from small s join large l on s.k = l.k order by w, s.v",
    "below a limit": "select count(*) as n from (select l.v from small s join large l on s.k = l.k limit 50)",
    "below another shuffle join": (
        "select s.v, l.v as w, m.v as x from small s join large l on s.k = l.k join middle m on m.j = l.j"
    ),
}
WHOLE_JOINS = {
    "left": (
        "select s.v, l.v as w from small s left join large l on s.k = l.k",
        "checks each build-side row against all probe rows",
    ),
    "full": (
        "select s.v, l.v as w from small s full join large l on s.k = l.k",
        "checks each build-side row against all probe rows",
    ),
    "an aggregate by the key": (
        "select s.k, count(*) as n from small s join large l on s.k = l.k group by s.k",
        "the aggregate needs all rows of a key",
    ),
    "a window over the key": (
        "select l.v, count(*) over (partition by l.k) as n from small s join large l on s.k = l.k",
        "the window needs all rows of a key",
    ),
}


@pytest.fixture(scope="module")
def skewed(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Four of five rows of `large` have the same key."""
    session = connect_shared(SHUFFLED)
    directory = tmp_path_factory.mktemp("skew")
    keys = [row % 30 if row % 5 == 0 else 3 if row % 21 else None for row in range(2000)]
    session.register_parquet("small", write_keyed(directory, "small", [2, 2, 3, 5, None, 8, None, 40], 2))
    session.register_parquet("middle", write_keyed(directory, "middle", [*range(12), None, 3, 3], 3))
    session.register_parquet("large", write_keyed(directory, "large", keys, 4))
    return session


def decisions(events: list[Event]) -> list[SkewDecided]:
    return [event for event in events if isinstance(event, SkewDecided)]


def can_split(runner: Runner) -> bool:
    """Spark's own shuffle hands out whole partitions."""
    return runner.settings.get("sparkfusion.store") != "spark"


@pytest.mark.parametrize("sql", SPLIT_JOINS.values(), ids=SPLIT_JOINS)
def test_a_split_join_gives_the_same_rows(skewed: Session, runner: Runner, sql: str) -> None:
    skewed.config[SKEW] = ALWAYS
    events = record(skewed)
    assert_distributed_like_single_node(skewed.sql(sql))
    assert any(decided.split for decided in decisions(events)) == can_split(runner)


@pytest.mark.sample("local")
@pytest.mark.parametrize(("sql", "reason"), WHOLE_JOINS.values(), ids=WHOLE_JOINS)
def test_a_join_that_needs_whole_partitions_keeps_them(skewed: Session, runner: Runner, sql: str, reason: str) -> None:
    skewed.config[SKEW] = ALWAYS
    events = record(skewed)
    assert_distributed_like_single_node(skewed.sql(sql))
    found = decisions(events)
    assert found
    assert not any(decided.split for decided in found)
    assert any(reason in decided.reason for decided in found) == can_split(runner)


@pytest.mark.sample("local", "flight", "spark-local", "spark-spark")
@pytest.mark.parametrize("value", [NEVER, "4KiB"])
def test_only_a_large_partition_is_split(skewed: Session, runner: Runner, value: object) -> None:
    skewed.config[SKEW] = value
    events = record(skewed)
    assert_distributed_like_single_node(skewed.sql(INNER))
    found = decisions(events)
    assert len(found) == (0 if value == NEVER else 1)
    tasks = [event.tasks for event in events if isinstance(event, StageStarted)][-1]
    if found and can_split(runner):
        assert found[0].reason.startswith("split: partition ")
        assert found[0].reason.endswith(" divided among 4 tasks")
        assert tasks == 7
    elif found:
        assert "frames are in Spark's own shuffle" in found[0].reason
    else:
        assert tasks == 4


@pytest.mark.runners("local", "flight", reason="Spark's own shuffle cannot be split; the numbers are the same anywhere")
def test_explain_shows_the_decision_and_its_numbers(skewed: Session) -> None:
    skewed.config[SKEW] = "4KiB"
    shown = skewed.sql(INNER).explain_text(analyze=True)
    assert "decided: split: partition " in shown
    assert "ran as 7 tasks" in shown
    stages = json.loads(skewed.sql(INNER).explain_text(analyze=True, format="json"))["stages"]
    (stage,) = [each for each in stages if "decisions" in each]
    assert stage["decisions"][0].startswith("split: partition ")
    assert "decided" not in skewed.sql(INNER).explain_text()


@pytest.mark.runners("local", reason="progress counts the same events anywhere")
def test_progress_counts_the_tasks_of_split_partitions(skewed: Session) -> None:
    skewed.config[SKEW] = ALWAYS
    progress = Progress()
    skewed.subscribe(progress)
    skewed.sql(INNER).collect()
    assert progress.state.stages_done == progress.state.stages_total
    assert progress.state.tasks_done == progress.state.tasks_total > 12


def test_rows_of_a_split_join_are_written_by_tasks(skewed: Session, tmp_path: Path) -> None:
    skewed.config[SKEW] = ALWAYS
    expected = skewed.sql(INNER).to_datafusion().to_arrow_table().num_rows
    skewed.sql(INNER).write_parquet(tmp_path / "written")
    assert pq.read_table(tmp_path / "written").num_rows == expected
