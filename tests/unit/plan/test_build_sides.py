"""Joins with tables of the host: the smaller side is built, a small one goes to every task, and answers stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.ids import SourceFile
from sparkfusion.plan.build_sides import choose_build_sides
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.table_parts import TableHint, bind_tables, mark_tables, parts_of
from sparkfusion.plan.wire import PlanNode, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context

PARTS = 2
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])
ROWS = {
    "large": pa.table({"k": [1, 2, 2, 3, None, 5], "v": ["a", "b", "c", "d", "e", "f"]}, SCHEMA),
    "small": pa.table({"k": [2, 3, 3, 4, None], "v": ["x", "y", "z", "w", "q"]}, SCHEMA),
}
HINTS = {0: TableHint("large", 1_000_000, PARTS), 1: TableHint("small", 1_000, PARTS)}
JOINS = {
    "inner": "select l.v, s.v, l.k from {l} l join {s} s on l.k = s.k and l.v != s.v",
    "left": "select l.v, s.v from {l} l left join {s} s on l.k = s.k",
    "right": "select l.v, s.v from {l} l right join {s} s on l.k = s.k",
    "full": "select l.v, s.v, s.k from {l} l full join {s} s on l.k = s.k",
    "semi": "select l.v from {l} l where l.k in (select k from {s})",
    "anti": "select l.v from {l} l where not exists (select 1 from {s} s where s.k = l.k)",
    "mark": "select l.v from {l} l where l.k in (select k from {s}) or l.v = 'a'",
    "no column": "select 1 as one from {l} l join {s} s on l.k = s.k",
}


class Tables:
    """A context with tables `large` and `small` of the host, and `files`, which are Parquet of rows like `large`."""

    def __init__(self, home: Path) -> None:
        self._home = home / "home"
        self._context = context(NO_BROADCAST)
        self._files: dict[tuple[int, int], SourceFile] = {}
        for number, (name, rows) in enumerate(ROWS.items()):
            directory = self._home / str(number)
            directory.mkdir(parents=True)
            for part in range(PARTS):
                (directory / f"{part:06d}.arrow").write_bytes(b"-")
            self._context.register_arrow(name, str(directory), schema=SCHEMA)
            path = home / f"{name}.arrow"
            with pa.ipc.new_file(str(path), SCHEMA) as writer:
                writer.write_table(rows)
            self._files[number, 0] = SourceFile(str(path), path.stat().st_size)
        for number in range(3):
            (home / "files").mkdir(exist_ok=True)
            pq.write_table(ROWS["large"].slice(number * 2, 2), home / "files" / f"{number}.parquet")
        self._context.register_parquet("files", str(home / "files"))
        self._probe = SchemaProbe(self._context)

    def plan(self, sql: str) -> PlanNode:
        root = decode(self._context.sql(sql).execution_plan().to_bytes(self._context))
        mark_tables(root, str(self._home), HINTS)
        return root

    def choose(self, root: PlanNode, is_small: Callable[[PlanNode], bool] = lambda _: False) -> PlanNode:
        choose_build_sides(root, is_small, lambda node: len(self._probe.describe(node).arrow))
        return root

    def answer(self, root: PlanNode) -> Counter[tuple[object, ...]]:
        bound = bind_tables(encode(root), lambda table, part: self._files.get((table, part)))
        made = SessionContext()
        plan = ExecutionPlan.from_bytes(made, bound)
        batches = [frame.to_pyarrow() for p in range(plan.partition_count) for frame in made.execute(plan, p)]
        return Counter(row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def joins(root: PlanNode) -> list[pb.HashJoin]:
    return [node.hash_join for node in walk(root) if kind(node) == "hash_join"]


def read_by(side: PlanNode) -> set[str]:
    return {part.name for node in walk(side) for part in parts_of(node)}


@pytest.mark.parametrize("sql", JOINS.values(), ids=JOINS)
@pytest.mark.parametrize("order", [("large", "small"), ("small", "large")], ids=["large first", "small first"])
def test_the_smaller_side_is_built(tables: Tables, sql: str, order: tuple[str, str]) -> None:
    root = tables.plan(sql.format(l=order[0], s=order[1]))
    expected = tables.answer(root)
    assert expected
    (join,) = joins(tables.choose(root))
    assert join.partition_mode == pb.PARTITIONED
    assert read_by(join.left) == {"small"}
    assert tables.answer(root) == expected


@pytest.mark.parametrize("sql", JOINS.values(), ids=JOINS)
def test_a_small_side_is_collected(tables: Tables, sql: str) -> None:
    root = tables.plan(sql.format(l="large", s="small"))
    expected = tables.answer(root)
    (join,) = joins(tables.choose(root, lambda node: "small" in read_by(node)))
    collectable = join.partition_mode == pb.COLLECT_LEFT
    assert collectable == (join.join_type not in (pb.LEFT, pb.FULL))
    assert read_by(join.left) == {"small"}
    if collectable:
        assert kind(join.left) == "coalesce_partitions"
    assert tables.answer(root) == expected


def test_a_table_of_files_that_is_larger_is_not_built(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HINTS, 1, TableHint("small", 100, PARTS))
    root = tables.plan("select count(*), max(files.v) from files join small on files.k = small.k")
    expected = tables.answer(root)
    (join,) = joins(tables.choose(root))
    assert read_by(join.left) == {"small"}
    assert tables.answer(root) == expected


def test_sides_of_about_the_same_size_stay(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HINTS, 1, TableHint("small", 900_000, PARTS))
    (join,) = joins(tables.choose(tables.plan("select l.v from large l join small s on l.k = s.k")))
    assert read_by(join.left) == {"large"}


def test_an_order_that_a_join_keeps_stays(tables: Tables) -> None:
    """The sort below may be the one that the query asks for."""
    sql = "select l.v from large l join (select k, v from small order by v limit 4) s on l.k = s.k"
    (join,) = joins(tables.choose(tables.plan(sql)))
    assert read_by(join.left) == {"large"}
