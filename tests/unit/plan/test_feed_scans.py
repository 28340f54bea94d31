"""Fed scans in plans: found, divided into tasks, cut where units cannot be put together, bound to files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from sparkfusion.errors import InternalError
from sparkfusion.plan.distribute import ISOLATION_OPTIONS, distribute
from sparkfusion.plan.feed_scans import (
    FeedScan,
    FeedTable,
    UnitFile,
    bind_feed,
    feed_of,
    feeds_read,
    mark_feeds,
    row_limit,
)
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.plan.wire import PlanNode, decode, encode, file_scan_conf, kind, partition_count, walk
from sparkfusion.worker.task_context import session_config

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])


class Planned:
    """A context with fed tables f (3 tasks) and g (2 tasks) and a table t, planned as a session plans."""

    def __init__(self, home: Path) -> None:
        self.home = home
        config = SessionConfig().with_target_partitions(3)
        for name, value in ISOLATION_OPTIONS.items():
            config = config.set(name, value)
        self.context = SessionContext(config)
        self.context.register_record_batches("t", [[pa.record_batch({"k": pa.array([1], pa.int64()), "name": ["x"]})]])
        self.tables: dict[int, FeedTable] = {}
        for number, (name, tasks) in enumerate((("f", 3), ("g", 2))):
            directory = home / str(number)
            directory.mkdir()
            for part in range(2):
                (directory / f"{part}.arrow").write_bytes(b"-")
            self.context.register_arrow(name, str(directory), schema=SCHEMA)
            template = next(
                encode(node)
                for node in walk(decode(self.context.table(name).execution_plan().to_bytes(self.context)))
                if file_scan_conf(node) is not None
            )
            self.tables[number] = FeedTable(name, template, tasks=tasks)

    def root(self, sql: str) -> tuple[PlanNode, tuple[FeedScan, ...]]:
        root = decode(self.context.sql(sql).execution_plan().to_bytes(self.context))
        return root, mark_feeds(root, str(self.home), self.tables.__getitem__, lambda size: 5)

    def graph(self, sql: str) -> StageGraph:
        root, _ = self.root(sql)
        return distribute(root, SchemaProbe(SessionContext(session_config(ISOLATION_OPTIONS))))


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    return Planned(tmp_path)


def test_scans_of_fed_tables_are_found_with_their_columns(planned: Planned) -> None:
    root, scans = planned.root("select f.v, g.s from f join g on f.k = g.k")
    assert sorted((scan.table, scan.tasks, set(scan.columns)) for scan in scans) == [
        (0, 3, {"k", "v"}),
        (1, 2, {"k", "s"}),
    ]
    assert sorted(feeds_read(root)) == sorted(scan.feed for scan in scans) == [0, 1]
    assert {partition_count(node) for node in walk(root) if feed_of(node) is not None} == {3, 2}


def test_each_scan_of_a_table_is_a_feed_of_its_own(planned: Planned) -> None:
    _, scans = planned.root("select a.v from f a join f b on a.k = b.v")
    assert [(scan.feed, scan.table) for scan in scans] == [(0, 0), (1, 0)]


def test_a_plan_without_fed_tables_is_left_alone(planned: Planned) -> None:
    root = decode(planned.context.sql("select k from t").execution_plan().to_bytes(planned.context))
    before = encode(root)
    assert mark_feeds(root, str(planned.home), planned.tables.__getitem__, lambda size: 5) == ()
    assert encode(root) == before
    assert feeds_read(root) == ()


@pytest.mark.parametrize(
    ("tasks", "partitions", "bytes", "expected"),
    [
        (None, None, None, 9),
        (3, None, None, 3),
        (None, 4, None, 4),
        (7, 4, None, 4),
        (None, None, 10, 1),
        (2, 5, 10, 2),
    ],
)
def test_how_many_tasks_read_a_feed(
    tasks: int | None, partitions: int | None, bytes: int | None, expected: int
) -> None:
    fed = FeedTable("f", b"", (), tasks, partitions, bytes)
    assert fed.tasks_of(lambda size: 1 if size < 100 else 9) == expected


# ---- where the cut goes

STAGES = {
    "rows": ("select v from f where k > 1", [("gather", 3, True)]),
    "grouped": ("select k, sum(v) from f group by k", [("shuffle", 3, True), ("gather", 3, False)]),
    "global": ("select sum(v) from f", [("gather", 3, True)]),
    "sorted": ("select v from f order by v", [("forward", 3, True), ("gather", 3, False)]),
    "union": ("select v from f union all select v from g", [("gather", 5, True)]),
    "windowed": (
        "select v, row_number() over (partition by k order by v) as n from f",
        [("shuffle", 3, True), ("gather", 3, False)],
    ),
    "build side": ("select f.v from f cross join g", [("broadcast", 3, True), ("gather", 2, True)]),
}


@pytest.mark.parametrize(("sql", "stages"), STAGES.values(), ids=STAGES)
def test_a_fed_stage_ends_where_units_cannot_be_put_together(
    planned: Planned, sql: str, stages: list[tuple[str, int, bool]]
) -> None:
    graph = planned.graph(sql)
    found = [
        (graph.exchange(stage.output).kind.value, stage.task_count, bool(feeds_read(decode(stage.plan))))
        for stage in graph.stages
    ]
    assert sorted(found, reverse=True) == sorted(stages, reverse=True)


@pytest.mark.parametrize(("sql", "stages"), STAGES.values(), ids=STAGES)
def test_the_head_reads_no_feed(planned: Planned, sql: str, stages: list[tuple[str, int, bool]]) -> None:
    head = planned.graph(sql).head
    assert head.plan is None or not feeds_read(decode(head.plan))


NOT_UNIT_WISE = {"sort", "window", "sort_preserving_merge", "sort_merge_join", "symmetric_hash_join", "interleave"}


@pytest.mark.parametrize(
    "sql",
    [
        "select v from f order by v limit 3",
        "select k, count(*) from (select k from f union all select k from g) x group by k",
        "select distinct k from f order by k",
        "select f.v from f join g on f.k = g.k order by f.v",
        "select f.v from f left join g on f.v < g.v",
        "select count(*) from (select v from f limit 3) x",
        "select k from f intersect select k from g",
        "select v, sum(v) over (order by v) as x from f",
        "select t.name, f.v from t full join f on t.k = f.k",
    ],
)
def test_nothing_that_needs_all_rows_stands_above_a_feed_in_its_stage(planned: Planned, sql: str) -> None:
    for stage in planned.graph(sql).stages:
        root = decode(stage.plan)
        for node in walk(root):
            if not feeds_read(node) or node is root:
                continue
            if kind(node) == "sort":
                assert node.sort.fetch >= 0, "only first rows may be sorted unit by unit"
            elif kind(node) == "aggregate":
                assert node.aggregate.mode == 0
            else:
                assert kind(node) not in NOT_UNIT_WISE


@pytest.mark.parametrize("sql", [sql for sql, _ in STAGES.values()])
def test_a_task_reads_one_feed(planned: Planned, sql: str) -> None:
    for stage in planned.graph(sql).stages:
        for task in range(stage.task_count):
            isolated = isolate(stage, (task,))
            reads = feeds_read(decode(isolated.plan))
            assert reads == (() if isolated.feed is None else (isolated.feed,))
        assert stage.task_count == len([isolate(stage, (task,)) for task in range(stage.task_count)])


def test_a_forward_exchange_keeps_tasks_apart(planned: Planned) -> None:
    graph = planned.graph("select v from f order by v")
    (forward,) = [exchange for exchange in graph.exchanges if exchange.kind is ExchangeKind.FORWARD]
    consumer = next(stage for stage in graph.stages if forward.id in stage.inputs)
    assert consumer.task_count == graph.producer_of(forward.id).task_count == 3
    for task in range(3):
        assert isolate(consumer, (task,)).groups == ((forward.id, task),)


# ---- binding


def test_files_are_bound_to_the_scan_of_the_task(planned: Planned) -> None:
    stage = planned.graph("select v from f where k > 1").stages[0]
    task = isolate(stage, (1,))
    bound = decode(bind_feed(task.plan, [UnitFile("a/b.arrow", 10), UnitFile("c.arrow", 20, (5, 9))], "s3://bucket/"))
    (conf,) = [conf for node in walk(bound) if (conf := file_scan_conf(node)) is not None]
    assert conf.object_store_url == "s3://bucket/"
    (group,) = conf.file_groups
    assert [(file.path, file.size) for file in group.files] == [("a/b.arrow", 10), ("c.arrow", 20)]
    assert not group.files[0].HasField("range")
    assert (group.files[1].range.start, group.files[1].range.end) == (5, 9)
    assert feeds_read(bound) == ()


def test_a_plan_without_a_feed_cannot_be_bound(planned: Planned) -> None:
    plan = planned.context.sql("select k from t").execution_plan().to_bytes(planned.context)
    with pytest.raises(InternalError, match="0 feeds"):
        bind_feed(plan, [], "file:///")


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("select count(*) from (select v from f limit 5) x", 5),
        ("select count(*) from (select v from f limit 5 offset 3) x", 8),
        ("select count(*) from (select v from f where k > 0 limit 5) x", 5),
        ("select sum(v) from f", None),
        ("select v from f order by v limit 5", None),
    ],
)
def test_a_tasks_own_limit_is_known(planned: Planned, sql: str, limit: int | None) -> None:
    """A task with so many rows takes no more units."""
    graph = planned.graph(sql)
    (fed,) = [stage for stage in graph.stages if feeds_read(decode(stage.plan))]
    assert row_limit(isolate(fed, (0,)).plan) == limit
