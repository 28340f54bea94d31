"""The sides of a shuffle join are swapped when the build side turns out to be the larger one; the answer stays the
same."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion import Session
from sparkfusion.observe.events import Event, JoinDecided
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, record, write_files
from tests.conftest import Connect

SWAP = "sparkfusion.swap_factor"
ALWAYS, NEVER = -1, 0
AS_WRITTEN = {
    **DISTRIBUTED,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.adaptive_broadcast_bytes": 0,
    "sparkfusion.key_set_bytes": 0,
    "sparkfusion.skew_bytes": 0,
    "sparkfusion.skip_empty_stages": False,
    "sparkfusion.frame_compression": "none",
    "datafusion.optimizer.join_reordering": False,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
INNER = "select l.v, s.v as w from large l join small s on l.k = s.k"
SWAPPED = {
    "inner": INNER,
    "all columns": "select * from large l join small s on l.k = s.k",
    "columns in another order": "select s.name, l.j, s.v, l.v as w, s.k from large l join small s on l.k = s.k",
    "columns of the build side only": "select l.v, l.k from large l join small s on l.k = s.k",
    "columns of the probe side only": "select s.v, s.name from large l join small s on l.k = s.k",
    "no columns": "select count(*) as n from large l join small s on l.k = s.k",
    "two keys": "select l.v, s.v as w from large l join small s on l.k = s.k and l.j = s.v",
    "a condition": "select l.v, s.v as w from large l join small s on l.k = s.k and l.v % 7 > s.v and s.v <> 3",
    "left": "select l.v, s.v as w, s.name from large l left join small s on l.k = s.k",
    "left with a condition": "select l.v, s.v as w from large l left join small s on l.k = s.k and l.v > s.v * 40",
    "right": "select l.v, l.j, s.v as w from large l right join small s on l.k = s.k",
    "right with a condition": "select l.v, s.v as w from large l right join small s on l.k = s.k and l.v > s.v * 40",
    "full": "select l.v, l.k, s.v as w, s.k as x from large l full join small s on l.k = s.k",
    "full with a condition": "select l.v, s.v as w from large l full join small s on l.k = s.k and l.v > s.v * 40",
    "semi": "select v, k from large l where exists (select 1 from small s where s.k = l.k)",
    "semi with a condition": "select v from large l where exists (select 1 from small s where s.k = l.k and s.v < l.v)",
    "anti": "select v, k from large l where not exists (select 1 from small s where s.k = l.k)",
    "anti with a condition": (
        "select v from large l where not exists (select 1 from small s where s.k = l.k and s.v < l.v)"
    ),
    "mark": "select v from large l where exists (select 1 from small s where s.k = l.k) or v % 5 = 0",
    "nulls match": "select l.v, s.v as w from large l join small s on l.k is not distinct from s.k",
    "computed columns": "select l.v + s.v as x, l.k * 2 as y from large l join small s on l.k = s.k where l.v > s.v",
    "three tables": "select l.v, s.v as w, m.v as x from large l join small s on l.k = s.k join middle m on m.k = s.k",
    "an aggregate by the key": "select s.k, sum(l.v) as t from large l join small s on l.k = s.k group by s.k",
    "a window over the key": (
        "select l.v, count(*) over (partition by l.k) as n from large l join small s on l.k = s.k"
    ),
    "sorted": "select l.v, s.v as w from large l join small s on l.k = s.k order by w, l.v",
}


@pytest.fixture(scope="module")
def joined(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Joins have the sides that are written there. The tables have columns of different types and numbers."""
    session = connect_shared(AS_WRITTEN)
    directory = tmp_path_factory.mktemp("swaps")
    large = [k % 31 if k % 9 else None for k in range(300)]
    columns = {
        "small": {"k": [2, 2, 3, 5, None, 8, None, 40], "v": range(8), "name": [f"name {v % 3}" for v in range(8)]},
        "middle": {"v": range(15), "k": [*range(12), None, 3, 3]},
        "large": {
            "j": [row % 11 for row in range(300)],
            "v": range(300),
            "k": large,
            "s": ["x"] * 300,
            "t": range(300),
        },
    }
    for name, made in columns.items():
        rows = pa.table({column: pa.array(list(values)) for column, values in made.items()})
        session.register_parquet(name, write_files(directory, name, rows, 3))
    return session


def swaps(events: list[Event]) -> list[JoinDecided]:
    return [event for event in events if isinstance(event, JoinDecided) and event.reason.startswith("sides swapped: ")]


@pytest.mark.sample("local")
@pytest.mark.parametrize("sql", SWAPPED.values(), ids=SWAPPED)
def test_a_swapped_join_gives_the_same_rows(joined: Session, sql: str) -> None:
    joined.config[SWAP] = ALWAYS
    events = record(joined)
    assert_distributed_like_single_node(joined.sql(sql))
    assert swaps(events)


def test_not_in_is_not_swapped(joined: Session) -> None:
    joined.config[SWAP] = ALWAYS
    events = record(joined)
    assert_distributed_like_single_node(joined.sql("select v from large where k not in (select v from small)"))
    assert swaps(events) == []


@pytest.mark.parametrize(("value", "count"), [(NEVER, 0), (4, 1), (1000, 0)])
def test_sides_are_swapped_if_the_build_side_is_much_larger(joined: Session, value: int, count: int) -> None:
    joined.config[SWAP] = value
    events = record(joined)
    assert_distributed_like_single_node(joined.sql(SWAPPED["all columns"]))
    assert len(swaps(events)) == count
    assert not any("sides swapped" in str(event) for event in _smaller_build_side(joined))


def _smaller_build_side(joined: Session) -> list[Event]:
    events = record(joined)
    assert_distributed_like_single_node(joined.sql("select * from small s join large l on l.k = s.k"))
    return events


@pytest.mark.runners("local", reason="the text is the same anywhere")
def test_explain_shows_the_sizes(joined: Session) -> None:
    joined.config[SWAP] = ALWAYS
    shown = joined.sql("select l.v, s.v as w from large l left join small s on l.k = s.k").explain_text(analyze=True)
    assert "decided: sides swapped: the build side (stage 1) has " in shown
    assert "join_type=Right" in shown
    assert "decided" not in joined.sql(INNER).explain_text()
