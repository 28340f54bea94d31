"""A shuffle join becomes a broadcast join when its build side turns out to be small; the answer stays the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, JoinDecided, StageStarted
from sparkfusion.observe.progress import Progress
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, record, write_keyed
from tests.conftest import Connect

BROADCAST = "sparkfusion.adaptive_broadcast_bytes"
ALWAYS, NEVER = -1, 0
SHUFFLED = {
    **DISTRIBUTED,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.skip_empty_stages": False,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
INNER = "select s.v, l.v as w from small s join large l on s.k = l.k"
BROADCAST_JOINS = {
    "inner": INNER,
    "inner with a condition": "select s.v, l.v as w from small s join large l on s.k = l.k and s.v < l.v",
    "right": "select s.v, l.v as w, l.k from small s right join large l on s.k = l.k",
    "semi": "select v, k from large l where exists (select 1 from small s where s.k = l.k)",
    "anti": "select v, k from large l where not exists (select 1 from small s where s.k = l.k)",
    "mark": "select v from large l where exists (select 1 from small s where s.k = l.k) or v % 5 = 0",
    "nulls match": "select s.v, l.v as w from small s join large l on s.k is not distinct from l.k",
    "empty build side, inner": "select e.v, l.v as w from empty e join large l on e.k = l.k",
    "empty build side, right": "select e.v, l.v as w from empty e right join large l on e.k = l.k",
    "empty build side, anti": "select v from large l where not exists (select 1 from empty e where e.k = l.k)",
    "empty probe side": "select s.v, l.v as w from small s join large l on s.k = l.k where l.v < 0",
    "below an aggregate": "select s.name, sum(l.v) as t from small s join large l on s.k = l.k group by s.name",
    "below a sort": "select s.v, l.v as w from small s join large l on s.k = l.k order by w, s.v",
    "more tasks than partitions": (
        "select s.v, l.v as w from small s join (select k, v from large union all select k, v + 1 from large) l "
        "on s.k = l.k order by w, s.v"
    ),
}
SHUFFLE_JOINS = {
    "left": "select s.v, l.v as w from small s left join large l on s.k = l.k",
    "full": "select s.v, l.v as w from small s full join large l on s.k = l.k",
    "semi of the build side": "select v from small s where exists (select 1 from large l where s.k = l.k)",
    "anti of the build side": "select v from small s where not exists (select 1 from large l where s.k = l.k)",
    "not in": "select v from large where k not in (select k from small where k is not null)",
    "an aggregate by the key": "select s.k, count(*) as n from small s join large l on s.k = l.k group by s.k",
    "a window over the key": "select l.v, count(*) over (partition by l.k) as n from small s join large l on s.k = l.k",
    "two joins of a key": (
        "select s.v, l.v as w, m.v as x from small s join large l on s.k = l.k full join middle m on m.k = l.k"
    ),
}
CHAIN = (
    "select s.name, count(*) as n, sum(l.v) as t from small s join middle m on s.k = m.k "
    "join large l on l.j = m.j where m.v >= 0 group by s.name"
)


@pytest.fixture(scope="module")
def joined(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = connect_shared(SHUFFLED)
    directory = tmp_path_factory.mktemp("joins")
    session.register_parquet("small", write_keyed(directory, "small", [2, 2, 3, 5, None, 8, None, 40], 2))
    session.register_parquet("middle", write_keyed(directory, "middle", [*range(12), None, 3, 3], 3))
    session.register_parquet("large", write_keyed(directory, "large", [k if k % 9 else None for k in range(30)] * 3, 4))
    session.register_parquet("empty", write_keyed(directory, "empty", [1, 2], 1))
    session.sql("create view none as select * from empty where v < 0")
    return session


def decisions(events: list[Event]) -> list[JoinDecided]:
    return [event for event in events if isinstance(event, JoinDecided)]


@pytest.mark.parametrize("sql", BROADCAST_JOINS.values(), ids=BROADCAST_JOINS)
def test_a_broadcast_join_gives_the_same_rows(joined: Session, sql: str) -> None:
    joined.config[BROADCAST] = ALWAYS
    events = record(joined)
    assert_distributed_like_single_node(joined.sql(sql.replace("from empty", "from none")))
    (decided,) = decisions(events)
    assert decided.absorbed is not None
    assert decided.absorbed not in {event.stage for event in events if isinstance(event, StageStarted)}


@pytest.mark.parametrize("sql", SHUFFLE_JOINS.values(), ids=SHUFFLE_JOINS)
def test_a_join_that_needs_the_shuffle_keeps_it(joined: Session, sql: str) -> None:
    joined.config[BROADCAST] = ALWAYS
    events = record(joined)
    assert_distributed_like_single_node(joined.sql(sql))
    assert decisions(events) == []


@pytest.mark.parametrize("value", [ALWAYS, NEVER, "64MiB"])
def test_a_chain_of_joins_gives_the_same_rows(joined: Session, value: object) -> None:
    joined.config[BROADCAST] = value
    events = record(joined)
    assert_distributed_like_single_node(joined.sql(CHAIN))
    absorbed = [decided.absorbed for decided in decisions(events) if decided.absorbed is not None]
    assert len(absorbed) == (2 if value == ALWAYS else len(absorbed) if value != NEVER else 0)


def test_explain_shows_the_decision_and_its_numbers(joined: Session) -> None:
    joined.config[BROADCAST] = ALWAYS
    shown = joined.sql(INNER).explain_text(analyze=True)
    assert "decided: broadcast join: the build side (stage 1) has" in shown
    assert "Stage 2" not in shown
    assert "mode=CollectLeft" in shown
    (stage,) = [
        each
        for each in json.loads(joined.sql(INNER).explain_text(analyze=True, format="json"))["stages"]
        if "decisions" in each
    ]
    assert stage["decisions"][0].startswith("broadcast join:")
    assert "decided" not in joined.sql(INNER).explain_text()


def test_explain_shows_why_a_join_stays_a_shuffle_join(joined: Session) -> None:
    joined.config[BROADCAST] = 1
    shown = joined.sql(INNER).explain_text(analyze=True)
    assert "decided: shuffle join: the build side (stage 1) has" in shown
    assert "more than sparkfusion.adaptive_broadcast_bytes (1)" in shown
    assert "mode=Partitioned" in shown


def test_progress_does_not_wait_for_the_stage_that_became_part_of_another(joined: Session) -> None:
    joined.config[BROADCAST] = ALWAYS
    progress = Progress()
    joined.subscribe(progress)
    joined.sql(INNER).collect()
    assert progress.state.status == "finished"
    assert progress.state.stages_done == progress.state.stages_total
    assert progress.state.tasks_done == progress.state.tasks_total


def test_rows_of_a_broadcast_join_are_written_by_tasks(joined: Session, tmp_path: Path) -> None:
    joined.config[BROADCAST] = ALWAYS
    expected = joined.sql(INNER).to_datafusion().to_arrow_table().num_rows
    joined.sql(f"{INNER} order by w").write_parquet(tmp_path / "written")
    assert pq.read_table(tmp_path / "written").num_rows == expected
