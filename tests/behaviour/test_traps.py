"""Every trap of isolated execution (docs: design, traps 1 to 22), each with a query that falls into it if let.

`..._without_handling_...` takes the handling out and shows that the answer is then wrong, an error or a hang: that
is the proof that the test above it can fail.
"""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import udf
from datafusion.options import CsvReadOptions

import sparkfusion.plan.cut as cut_module
import sparkfusion.plan.isolate as isolate_module
import sparkfusion.plan.rules as rules_module
import sparkfusion.session.planner as planner_module
from sparkfusion import Session
from sparkfusion.errors import PlanTooLargeError, QueryCancelledError, VerificationError
from sparkfusion.plan.distribute import ISOLATION_OPTIONS, distribute
from sparkfusion.plan.gate import _REFUSED
from sparkfusion.plan.sources import exchange_of, exchange_source
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.plan.wire import PlanNode, body, children, decode, kind, partition_count, walk
from sparkfusion.runner.machine import QueryState
from sparkfusion.session.frame import DataFrame
from sparkfusion.verify import Outcome, VerifyResult, assert_distributed_eq, compare_tables, verify_query
from tests.behaviour.trap_tables import register, write_tables
from tests.conftest import Connect

Connected = Callable[..., Session]

WRONG = (Outcome.WRONG_ANSWER, Outcome.WIRE_LOSS, Outcome.ERROR_MISMATCH)
PARTITIONED_JOINS: dict[str, object] = {
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traps")
    write_tables(directory)
    return directory


@pytest.fixture
def connected(connect: Connect, files: Path) -> Connected:
    """A session over the small tables that distributes everything: `connected(target_partitions=5)`."""

    def make(config: dict[str, object] | None = None, *, target_partitions: int = 3) -> Session:
        forced = {
            "sparkfusion.bytes_per_partition": 1,
            "datafusion.execution.target_partitions": target_partitions,
        }
        return register(connect({**forced, **(config or {})}), files)

    return make


def graph_of(frame: DataFrame) -> StageGraph:
    distribution = frame.distribution()
    assert distribution.graph is not None, distribution.reason
    return distribution.graph


def kinds_in(graph: StageGraph) -> set[str]:
    plans = [stage.plan for stage in graph.stages] + [graph.head.plan or b""]
    return {kind(node) for plan in plans for node in walk(decode(plan))}


def without_rules(patch: pytest.MonkeyPatch, *names: str) -> None:
    kept = tuple(rule for rule in rules_module.RULES if rule.__name__ not in names)
    assert len(kept) == len(rules_module.RULES) - len(names)
    patch.setattr(rules_module, "RULES", kept)


def allow(patch: pytest.MonkeyPatch, option: str) -> None:
    assert option in ISOLATION_OPTIONS
    patch.setitem(ISOLATION_OPTIONS, option, "true")


def assert_single_node(frame: DataFrame, reason: str) -> None:
    """The query runs on a single node, says why, and its answer is DataFusion's."""
    distribution = frame.distribution()
    assert not distribution.distributed
    assert reason in (distribution.reason or "")
    assert compare_tables(frame.to_datafusion().to_arrow_table(), frame.collect()).equal


def run_alone(session: Session, sql: str, seconds: float) -> list[VerifyResult | BaseException]:
    """Run a query on a thread; nothing comes back if it is still running after a while."""
    found: list[VerifyResult | BaseException] = []

    def run() -> None:
        try:
            session.sql(sql).collect()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    was_running = thread.is_alive()
    session.close()
    thread.join(20)
    assert not thread.is_alive()
    return [] if was_running else found


# ---- 1, 2: state shared by the partitions of one plan instance


@pytest.mark.parametrize("target_partitions", [2, 5, 7])
def test_trap_01_file_scans_share_one_work_queue(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, "select v, k from facts")
    assert session.config["datafusion.execution.enable_file_stream_work_stealing"] == "true"  # single node keeps it


def test_trap_01_without_handling_every_task_reads_every_file(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, "datafusion.execution.enable_file_stream_work_stealing")
    monkeypatch.setattr(isolate_module, "restrict", lambda node, partitions: None)
    frame = connected().sql("select v from facts")
    assert frame.collect().num_rows == 200 * graph_of(frame).task_count


def test_trap_02_dynamic_filters_wait_for_sibling_partitions(connected: Connected) -> None:
    sql = "select facts.v, events.v as w from facts join events on facts.k = events.k"
    assert_distributed_eq(connected(), sql)
    partitioned = connected(PARTITIONED_JOINS)
    assert_distributed_eq(partitioned, sql)
    assert "DynamicFilter" not in partitioned.sql(sql).explain_text()


@pytest.mark.parametrize("config", [{}, PARTITIONED_JOINS], ids=["collect left", "partitioned"])
def test_trap_02_without_handling_the_query_hangs(
    connected: Connected, monkeypatch: pytest.MonkeyPatch, config: dict[str, object]
) -> None:
    for option in ISOLATION_OPTIONS:
        if "dynamic_filter" in option:
            allow(monkeypatch, option)
    monkeypatch.setattr(isolate_module, "restrict", lambda node, partitions: None)
    sql = "select facts.v, events.v as w from facts join events on facts.k = events.k"
    assert run_alone(connected(config), sql, seconds=1.0) == []


# ---- 3 to 6: joins that need one side whole

BUILD_EMITTING = {
    "left": "select e.v, f.v as w from events e left join facts f on f.k = e.k",
    "full": "select e.v, f.v as w from events e full join facts f on f.k = e.k",
    "semi": "select v from events where k in (select k from facts)",
    "anti": "select v from events e where not exists (select 1 from facts f where f.k = e.k)",
    "intersect": "select k from events intersect select k from facts",
    "except": "select k from events except select k from facts",
}


@pytest.mark.parametrize("sql", BUILD_EMITTING.values(), ids=BUILD_EMITTING)
def test_trap_03_collected_left_join_keeps_matches_per_instance(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)
    assert_distributed_eq(connected({"sparkfusion.merge_small_partitions": False}, target_partitions=5), sql)


def test_trap_03_mark_join(connected: Connected) -> None:
    assert_distributed_eq(connected(), "select v from events where k in (select k from facts) or v < 30")


@pytest.mark.parametrize("sql", BUILD_EMITTING.values(), ids=BUILD_EMITTING)
def test_trap_03_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    # the second rule would catch what the first one leaves
    without_rules(monkeypatch, "partition_unsafe_build_side", "gather_unsafe_probe_side")
    assert verify_query(connected(), sql).outcome is Outcome.WRONG_ANSWER


NULL_AWARE = "select v from events where k not in (select k from facts)"


def test_trap_04_null_aware_anti_join(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, NULL_AWARE)
    with_null = "select v from events where k not in (select case when v = 3 then null else k end from facts)"
    assert_distributed_eq(session, with_null)
    assert session.sql(with_null).collect().num_rows == 0


def test_trap_04_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch, "gather_unsafe_probe_side")
    assert verify_query(connected(), NULL_AWARE).outcome is Outcome.WRONG_ANSWER


NESTED_LOOP = {
    "left": "select e.v, f.v as w from events e left join facts f on e.v < f.v - 500 and f.k > e.k",
    "full": "select e.v, f.v as w from events e full join facts f on e.v < f.v - 500 and f.k > e.k",
}


@pytest.mark.parametrize("sql", NESTED_LOOP.values(), ids=NESTED_LOOP)
def test_trap_05_nested_loop_join_emits_build_rows(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)


@pytest.mark.parametrize("sql", NESTED_LOOP.values(), ids=NESTED_LOOP)
def test_trap_05_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    without_rules(monkeypatch, "gather_unsafe_probe_side")
    assert verify_query(connected(), sql).outcome is Outcome.WRONG_ANSWER


CROSS = "select f.v, e.v as w from facts f cross join events e"


def test_trap_06_the_left_side_is_whole_in_every_task(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, CROSS)
    graph = graph_of(session.sql(CROSS))
    broadcast = next(each for each in graph.exchanges if each.kind is ExchangeKind.BROADCAST)
    reader = next(stage for stage in graph.stages if broadcast.id in stage.inputs)
    assert reader.task_count > 1
    assert graph.producer_of(broadcast.id).task_count > 1


def test_trap_06_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    every_group = QueryState.files

    def first_group_only(self: QueryState, exchange: int, group: int) -> Any:
        is_shuffle = self.graph.exchange(exchange).kind is ExchangeKind.SHUFFLE
        return every_group(self, exchange, group) if is_shuffle or group == 0 else []

    monkeypatch.setattr(QueryState, "files", first_group_only)
    assert verify_query(connected(), CROSS).outcome is Outcome.WRONG_ANSWER


# ---- 7 to 9: what must run exactly once

SCALAR_SUBQUERY = "select k, count(*) as n from facts where v > (select avg(v) from events) group by k"


def test_trap_07_scalar_subqueries_become_joins(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, SCALAR_SUBQUERY)
    assert "scalar_subquery" not in kinds_in(graph_of(session.sql(SCALAR_SUBQUERY)))


def test_trap_07_the_gate_refuses_one_that_is_left(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery")
    assert_single_node(connected().sql(SCALAR_SUBQUERY), "physical scalar subquery")


def test_trap_07_without_handling_fails(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery")
    monkeypatch.delitem(_REFUSED, "scalar_subquery")
    assert verify_query(connected(), SCALAR_SUBQUERY).outcome is not Outcome.PASSED


ONE_RANDOM_VALUE = (
    "select count(distinct q.r) as n from (select random() as r, v from single limit 1) q join facts f on q.v <= f.v"
)


def test_trap_08_a_limited_or_volatile_side_runs_once(connected: Connected) -> None:
    session = connected()
    assert session.sql(ONE_RANDOM_VALUE).collect().to_pylist() == [{"n": 1}]
    limited = "select f.k, count(*) as n from (select k from events limit 20) q join facts f on f.k = q.k group by f.k"
    graph = graph_of(session.sql(limited))
    with_fetch = [stage for stage in graph.stages if any(_stops_early(node) for node in walk(decode(stage.plan)))]
    assert with_fetch
    for stage in with_fetch:
        local = {kind(node) for node in walk(decode(stage.plan)) if _stops_early(node)} <= {"local_limit"} | _SCANS
        assert local or stage.task_count == 1
        assert not stage.deterministic


def test_trap_08_rows_of_a_limit_add_up(connected: Connected) -> None:
    sql = "select sum(n) as n from (select k, count(*) as n from (select k from facts limit 77) group by k)"
    for target_partitions in (2, 5, 7):
        frame = connected(target_partitions=target_partitions).sql(sql)
        assert frame.distribution().distributed
        assert frame.collect().to_pylist() == [{"n": 77}]


def test_trap_08_without_handling_every_task_sees_other_values(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_module, "may_repeat", lambda *args: True)
    (row,) = connected().sql(ONE_RANDOM_VALUE).collect().to_pylist()
    assert row["n"] > 1


_SCANS = {"parquet_scan"}


def _stops_early(node: PlanNode) -> bool:
    if kind(node) == "parquet_scan":
        return node.parquet_scan.base_conf.HasField("limit")
    return kind(node) in ("local_limit", "global_limit") or (
        kind(node) == "coalesce_partitions" and node.coalesce_partitions.HasField("fetch")
    )


def test_trap_09_a_scan_with_a_limit_is_not_split(connected: Connected) -> None:
    sql = "select sum(n) as n from (select k, count(*) as n from (select k from single limit 30) group by k)"
    for target_partitions in (2, 5, 7):
        frame = connected(target_partitions=target_partitions).sql(sql)
        graph = graph_of(frame)
        scans = [
            (stage, node)
            for stage in graph.stages
            for node in walk(decode(stage.plan))
            if kind(node) == "parquet_scan" and node.parquet_scan.base_conf.HasField("limit")
        ]
        assert scans
        for stage, _ in scans:
            limited_again = {"local_limit", "coalesce_partitions"} & {kind(n) for n in walk(decode(stage.plan))}
            assert stage.task_count == 1 or limited_again
        assert frame.collect().to_pylist() == [{"n": 30}]


# ---- 10 to 13: which row is where


SPREAD = "select k, sum(v) as total from (select k, v from single limit 40) group by k"
SMALL_BATCHES: dict[str, object] = {"datafusion.execution.batch_size": 10}


def test_trap_10_round_robin_depends_on_scheduling(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    session = connected(SMALL_BATCHES)
    assert_distributed_eq(session, SPREAD)
    allow(monkeypatch, "datafusion.optimizer.enable_round_robin_repartition")  # then the rule has to do it
    assert_distributed_eq(session, SPREAD)
    assert_distributed_eq(session, session.sql("select v, k from facts").repartition(5))
    assert "repartition" in kinds_in(graph_of(session.sql(SPREAD)))  # the hash one stays
    assert "RoundRobin" not in session.sql(SPREAD).explain_text()


def test_trap_10_without_handling_fails(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch, "drop_random_repartition")
    allow(monkeypatch, "datafusion.optimizer.enable_round_robin_repartition")
    frame = connected(SMALL_BATCHES).sql(SPREAD)
    assert not compare_tables(frame.to_datafusion().to_arrow_table(), frame.collect()).equal


UNION = "select k, v from facts union all select k, v from events union all select k, v from single"
INTERLEAVE = (
    "select k, count(*) as n from facts where v > 3 group by k "
    "union all select k, count(*) as n from events where v > 3 group by k"
)


@pytest.mark.parametrize("target_partitions", [2, 5, 7])
def test_trap_11_union_partitions_are_added_up(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, UNION)
    assert_distributed_eq(session, INTERLEAVE)
    assert "interleave" in kinds_in(graph_of(session.sql(INTERLEAVE)))


def test_trap_11_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    def same_partition_of_every_child(node: PlanNode, partitions: tuple[int, ...]) -> None:
        for child in children(node):
            isolate_module.restrict(child, (partitions[0] % partition_count(child),))
        isolate_module._restrict_merge(node)

    def first_child_only(node: PlanNode, partitions: tuple[int, ...]) -> None:
        first = children(node)[0]
        isolate_module.restrict(first, partitions)
        node.CopyFrom(first)

    monkeypatch.setattr(isolate_module, "_restrict_union", same_partition_of_every_child)
    monkeypatch.setattr(isolate_module, "_restrict_interleave", first_child_only)
    assert verify_query(connected(), UNION).outcome in WRONG
    assert verify_query(connected(), INTERLEAVE).outcome in WRONG


def _join_of_views(session: Session, *, right: pa.DataType) -> str:
    """A shuffled join on string views; with another right type its scan is exchanged behind the planner's back."""
    names = [f"name {i}" for i in range(40)]
    half = len(names) // 2
    for table, kind_of_key in (("views", pa.string_view()), ("others", right)):
        column = pa.array(names).cast(kind_of_key)
        batches = [[pa.record_batch({"s": column[:half]})], [pa.record_batch({"s": column[half:]})]]
        session.register_record_batches(table, batches)
    return "select a.s from views a join views b on a.s = b.s"


@pytest.fixture
def mixed_keys(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, str]:
    session = connected(PARTITIONED_JOINS)
    sql = _join_of_views(session, right=pa.string())
    other = decode(session.sql("select s from others").to_datafusion().execution_plan().to_bytes(session.context))
    plain = distribute

    def with_another_key_type(root: PlanNode, *args: Any) -> StageGraph:
        join = next(node for node in walk(root) if kind(node) == "hash_join")
        scan = next(node for node in walk(join.hash_join.right) if kind(node) == "memory_scan")
        scan.CopyFrom(next(node for node in walk(other) if kind(node) == "memory_scan"))
        return plain(root, *args)

    monkeypatch.setattr(planner_module, "distribute", with_another_key_type)
    return session, sql


def test_trap_12_string_views_hash_unlike_strings(connected: Connected) -> None:
    session = connected(PARTITIONED_JOINS)
    sql = _join_of_views(session, right=pa.string())
    assert_distributed_eq(session, sql)
    assert_distributed_eq(session, "select a.s from views a join others b on a.s = b.s")


def test_trap_12_the_cut_refuses_mixed_key_types(mixed_keys: tuple[Session, str]) -> None:
    session, sql = mixed_keys
    assert_single_node(session.sql(sql), "hash different key types: ['string'] and ['string_view']")


def test_trap_12_without_handling_rows_miss_each_other(
    mixed_keys: tuple[Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, sql = mixed_keys
    monkeypatch.setattr(cut_module._Cutter, "_check_key_types", lambda self, node: None)
    frame = session.sql(sql)
    assert frame.distribution().distributed
    try:
        found = frame.collect().num_rows
    except Exception:
        return
    assert found < 40


SORTED = "select v, k from facts order by k, v"


@pytest.mark.parametrize("target_partitions", [2, 4, 7])
def test_trap_13_sorted_partitions_stay_apart(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, SORTED)
    assert session.sql(SORTED).collect() == session.sql(SORTED).to_datafusion().to_arrow_table()


def test_trap_13_without_handling_order_is_lost(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = exchange_source

    def together(exchange: int, groups: int, schema: bytes, width: int) -> PlanNode:
        made = apart(exchange, groups, schema, width)
        conf = made.arrow_scan.base_conf
        placeholders = [file for group in conf.file_groups for file in group.files]
        del conf.file_groups[:]
        conf.file_groups.add().files.extend(placeholders)
        return made

    monkeypatch.setattr(cut_module, "exchange_source", together)
    assert verify_query(connected(), SORTED).outcome is Outcome.WRONG_ANSWER


# ---- 14, 15: what does not survive the wire format

LOST_WINDOWS = {
    "FILTER": "select v, sum(v) filter (where s = 's1') over (partition by k order by v) as z from facts",
    "IGNORE NULLS": "select v, last_value(x) ignore nulls over (partition by k order by v) as z from facts",
}
LOST_GROUPING = "select count(*) as n from facts where v > 3 group by grouping sets (())"


@pytest.mark.parametrize("mark", LOST_WINDOWS)
def test_trap_14_lost_window_options_run_on_a_single_node(connected: Connected, mark: str) -> None:
    session = connected()
    sql = LOST_WINDOWS[mark]
    assert_single_node(session.sql(sql), f"{mark} on a window function")
    session.sql(f"create view hidden as {sql}")
    assert_single_node(session.sql("select z, v from hidden where v > 10"), f"{mark} on a window function")
    in_subquery = f"select k from events where v in (select z from ({sql}))"
    assert_single_node(session.sql(in_subquery), f"{mark} on a window function")


def test_trap_14_a_line_break_in_a_literal_does_not_hide_them(connected: Connected) -> None:
    sql = (
        "select v, last_value(case when s = 'a\nb' then null else x end) ignore nulls "
        "over (partition by k order by v) as z from facts"
    )
    assert_single_node(connected().sql(sql), "IGNORE NULLS on a window function")


def test_trap_14_lost_grouping_sets_run_on_a_single_node(connected: Connected) -> None:
    assert_single_node(connected().sql(LOST_GROUPING), "GROUPING SETS (())")


def test_trap_14_what_survives_is_distributed(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select k, sum(v) filter (where s = 's1') as z from facts group by k")
    assert_distributed_eq(session, "select k, first_value(x order by v) ignore nulls as z from facts group by k")
    assert_distributed_eq(session, "select k, s, count(*) as n from facts group by grouping sets ((k), (s), ())")
    assert_distributed_eq(session, "select v, count(distinct s) over (partition by k order by v) as z from facts")


@pytest.mark.parametrize("sql", [*LOST_WINDOWS.values(), LOST_GROUPING], ids=[*LOST_WINDOWS, "grouping sets"])
def test_trap_14_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.setattr(planner_module, "check_logical", lambda *args: None)
    monkeypatch.setattr("sparkfusion.plan.distribute.check_physical", lambda root: None)
    assert verify_query(connected(), sql).outcome is Outcome.WIRE_LOSS


@pytest.fixture(scope="module")
def text_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files whose reading needs options. `packed` are compressed, under a name that does not say so."""
    directory = tmp_path_factory.mktemp("text")
    rows = "".join(f"{i},{i}\n" for i in range(30))
    for folder in ("csv", "packed", "gz", "array", "json_packed"):
        (directory / folder).mkdir()
    for i in range(3):
        (directory / "csv" / f"{i}.csv").write_text(f"a,b\n{rows}")
        (directory / "packed" / f"{i}.csv").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
        (directory / "gz" / f"{i}.csv.gz").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
        objects = [f'{{"a": {n}}}' for n in range(30)]
        (directory / "array" / f"{i}.json").write_text(f"[{','.join(objects)}]")
        (directory / "json_packed" / f"{i}.json").write_bytes(gzip.compress("\n".join(objects).encode()))
    return directory


PACKED = {"file_compression_type": "gzip"}


@pytest.mark.parametrize(
    ("registered", "read"),
    [
        ("packed", "packed"),
        ("packed", "public.packed"),
        ("packed", "packed as other"),
        ("public.packed", "packed"),
        ("Packed", "packed"),
        ('"Packed"', '"Packed"'),
        ("two words", '"two words"'),
    ],
)
def test_trap_14_lost_csv_options_by_any_name(
    connected: Connected, text_files: Path, registered: str, read: str
) -> None:
    session = connected()
    session.register_csv(registered, str(text_files / "packed"), **PACKED)
    assert_single_node(session.sql(f"select * from {read}"), "does not survive the wire format")


@pytest.mark.parametrize(
    ("folder", "option", "value"),
    [
        ("packed", "file_compression_type", "gzip"),
        ("csv", "null_regex", "NA"),
        ("csv", "terminator", "\n"),
    ],
)
def test_trap_14_lost_csv_options_in_an_options_object(
    connected: Connected, text_files: Path, folder: str, option: str, value: str
) -> None:
    session = connected()
    options = CsvReadOptions()
    setattr(options, option, value)
    session.register_csv("numbers", str(text_files / folder), options=options)
    assert_single_node(session.sql("select * from numbers"), f"table 'numbers': option '{option}'")


def test_trap_14_lost_csv_options_given_by_position(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_csv("packed", str(text_files / "packed"), None, True, ",", 1000, ".csv", "gzip")
    assert_single_node(session.sql("select * from packed"), "does not survive the wire format")


def test_trap_14_compressed_files_are_seen_by_their_name(connected: Connected, text_files: Path) -> None:
    frame = connected().read_csv(str(text_files / "gz"), file_extension=".csv.gz", **PACKED)
    assert_single_node(frame, "does not survive the wire format")


def test_trap_14_lost_options_of_unnamed_csv(connected: Connected, text_files: Path) -> None:
    frame = connected().read_csv(str(text_files / "packed"), **PACKED)
    assert_single_node(frame, "does not survive the wire format")


def test_trap_14_lost_options_of_unnamed_json(connected: Connected, text_files: Path) -> None:
    frame = connected().read_json(str(text_files / "json_packed"), **PACKED)
    assert_single_node(frame, "does not survive the wire format")


def test_trap_14_lost_json_options(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_json("packed", str(text_files / "json_packed"), **PACKED)
    assert_single_node(session.sql("select * from packed"), "table 'packed': option 'file_compression_type'")


EXTERNAL = {
    "plain": "create external table {name} stored as json location '{at}' options ({lost})",
    "options first": "create external table {name} options ({lost}) stored as json location '{at}'",
    "comment": "-- arrays\ncreate external table {name} stored as json location '{at}' options ({lost})",
    "block comment": "/* arrays */ create external table {name} stored as json location '{at}' options ({lost})",
}
LOST_OPTION = "'format.newline_delimited' 'false'"


@pytest.mark.parametrize("statement", EXTERNAL.values(), ids=EXTERNAL)
def test_trap_14_lost_options_of_external_tables(connected: Connected, text_files: Path, statement: str) -> None:
    session = connected()
    session.sql(statement.format(name="arrays", at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    assert_single_node(session.sql("select * from arrays"), "table 'arrays': option 'format.newline_delimited'")


@pytest.mark.parametrize(
    ("created", "read"), [("Arrays", "arrays"), ("public.arrays", "arrays"), ('"two words"', '"two words"')]
)
def test_trap_14_lost_options_of_external_tables_by_any_name(
    connected: Connected, text_files: Path, created: str, read: str
) -> None:
    session = connected()
    session.sql(EXTERNAL["plain"].format(name=created, at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    assert_single_node(session.sql(f"select * from {read}"), "does not survive the wire format")


def test_trap_14_option_names_need_no_quotes(connected: Connected, text_files: Path) -> None:
    session = connected()
    lost = "format.newline_delimited false"
    session.sql(EXTERNAL["plain"].format(name="arrays", at=f"{text_files / 'array'}/", lost=lost))
    assert_single_node(session.sql("select * from arrays"), "does not survive the wire format")


def test_trap_14_a_dropped_table_takes_its_lost_options_with_it(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_json("arrays", str(text_files / "json_packed"), **PACKED)
    session.deregister_table("arrays")
    session.register_record_batches("arrays", [[pa.record_batch({"a": [1]})], [pa.record_batch({"a": [2]})]])
    assert_distributed_eq(session, "select a from arrays")


CARRIED = CsvReadOptions(delimiter="|", quote="'", escape="\\", comment="#", newlines_in_values=True)


def test_trap_14_other_csv_options_are_carried(connected: Connected, tmp_path: Path) -> None:
    rows = "".join(f"{i}|'x\\'|y\nz'|{i}\n" for i in range(20))
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"# first\na|b|c\n{rows}# last\n")
    session = connected()
    session.register_csv("odd", str(tmp_path), options=CARRIED)
    assert_distributed_eq(session, "select * from odd")


def test_trap_15_what_cannot_be_encoded_runs_on_a_single_node(connected: Connected, files: Path) -> None:
    session = connected()
    recursive = (
        "with recursive r as (select min(v) as n from facts union all select n + 1 from r where n < 5) select n from r"
    )
    assert_single_node(session.sql(recursive), "cannot be encoded")
    schema = "select table_name from information_schema.tables where table_name = 'facts'"
    assert_single_node(session.sql(schema), "cannot be encoded")
    import pyarrow.dataset as ds

    session.register_dataset("dataset", ds.dataset(str(files / "facts")))
    assert_single_node(session.sql("select sum(v) as total from dataset"), "cannot be encoded")


def test_trap_15_plans_that_would_not_encode_are_not_made(connected: Connected) -> None:
    top_of_each = (
        "select v, k from (select v, k, row_number() over (partition by k order by v) r from facts) where r <= 2"
    )
    session = connected({"datafusion.optimizer.enable_piecewise_merge_join": True})
    assert_distributed_eq(session, top_of_each)
    assert_distributed_eq(session, "select e.v, f.v as w from events e join facts f on e.v < f.v")


# ---- 16, 17: counts that are not on the wire


def test_trap_16_placeholder_and_empty_partitions_are_counted(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select 1 as k union all select 2 union all select k from facts")
    assert_distributed_eq(
        session, "select k from facts union all select 2 as k union all select k from events where v < 9"
    )
    assert_distributed_eq(session, "select f.k, q.n from facts f cross join (select 7 as n) q")
    assert_distributed_eq(session, "select f.k from facts f left join (select 1 as k where false) q on q.k = f.k")


def test_trap_17_zero_column_frames_keep_their_row_count(connected: Connected) -> None:
    session = connected()
    nothing = session.sql("select v from facts where v > 10").select()
    assert nothing.distribution().distributed
    assert nothing.collect().num_rows == nothing.to_datafusion().to_arrow_table().num_rows == 196
    assert_distributed_eq(session, "select count(*) as n from facts f cross join events e where f.v > 10 and e.v > 10")
    assert_distributed_eq(session, "select 1 as one from facts f cross join (select k from events where v > 10) e")


# ---- 18, 22: the harness


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) as n from facts",  # a constant from statistics
        "select 1 as one",
        LOST_GROUPING,
    ],
)
def test_trap_18_a_query_that_was_not_distributed_is_no_proof(connected: Connected, sql: str) -> None:
    session = connected()
    result = verify_query(session, sql)
    assert result.outcome is Outcome.NOT_DISTRIBUTED
    assert result.reason
    with pytest.raises(VerificationError, match="not distributed"):
        assert_distributed_eq(session, sql)


def test_trap_22_harmless_differences_pass_and_others_do_not(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, "select s, v from facts order by s")  # ties
    assert_distributed_eq(session, "select s, v from facts where v > 3 order by s limit 30")  # ties at the limit
    assert_distributed_eq(session, "select s, sum(x * 0.1) as z, avg(x) as y from facts group by s")  # float sums
    once_each = pa.table({"a": [1, 1, 2]})
    assert not compare_tables(once_each, pa.table({"a": [1, 2, 2]})).equal  # the same set of rows
    assert not compare_tables(once_each, pa.table({"a": pa.array([1, 1, 2], pa.int32())})).equal
    assert compare_tables(once_each, pa.table({"a": [2, 1, 1]})).equal


# ---- 19: attempts do not mix


@pytest.mark.parametrize(
    ("sql", "deterministic"),
    [
        ("select k, v from facts where v > 3", True),
        ("select k, random() as r from facts", False),
        ("select k, uuid() as r from facts", False),
        ("select k, jitter(v) as r from facts", False),
        ("select k from facts limit 150", False),
    ],
)
def test_trap_19_stages_say_whether_they_may_be_repeated(connected: Connected, sql: str, deterministic: bool) -> None:
    session = connected()
    _register_jitter(session)
    stages = graph_of(session.sql(sql)).stages
    assert all(stage.deterministic for stage in stages) is deterministic


def test_trap_19_a_volatile_function_runs_once(connected: Connected) -> None:
    session = connected()
    _register_jitter(session)
    assert session.sql(ONE_RANDOM_VALUE.replace("random()", "jitter(v)")).collect().to_pylist() == [{"n": 1}]


def _register_jitter(session: Session) -> None:
    def jitter(column: pa.Array) -> pa.Array:
        return pa.array([random.random() for _ in column], pa.float64())

    session.register_udf(udf(jitter, [pa.int64()], pa.float64(), "volatile", name="jitter"))


# ---- 20, 21: what plans carry


def test_trap_20_exchange_sources_have_no_statistics(connected: Connected) -> None:
    graph = graph_of(connected(PARTITIONED_JOINS).sql("select f.v, e.v as w from facts f join events e on f.k = e.k"))
    plans = [stage.plan for stage in graph.stages] + [graph.head.plan or b""]
    sources = [node for plan in plans for node in walk(decode(plan)) if exchange_of(node) is not None]
    assert len(sources) == 2
    assert all(body(source).base_conf.statistics == b"" for source in sources)
    scans = [node for plan in plans for node in walk(decode(plan)) if kind(node) == "parquet_scan"]
    assert all(body(scan).base_conf.statistics != b"" for scan in scans)


def _big_table(session: Session) -> None:
    rows = list(range(20_000))
    for name in ("big", "small"):
        half = rows[:10_000] if name == "big" else rows[:5]
        batches = [[pa.record_batch({"a": half, "s": [f"row {i}" for i in half]})] for _ in range(2)]
        session.register_record_batches(name, batches)


def test_trap_21_big_memory_tables_do_not_travel_in_plans(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 100_000})
    _big_table(session)
    sql = "select b.a, s.s from big b join small s on b.a = s.a"
    assert_distributed_eq(session, sql)
    assert max(len(stage.plan) for stage in graph_of(session.sql(sql)).stages) < 20_000


def test_trap_21_spooled_tables_answer_like_memory_tables(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 1})
    _big_table(session)
    assert_distributed_eq(session, "select * from big")
    assert_distributed_eq(session, "select s from big where a % 7 = 0")
    assert_distributed_eq(session, "select f.k from facts f cross join small")
    assert_distributed_eq(session, "select count(*) as n, sum(f.k) as t from small cross join facts f")


def test_trap_21_spooled_tables_may_have_dictionaries_that_change(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": 1})
    batches = [pa.record_batch({"d": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["c", "b"])]
    session.register_record_batches("words", [batches, batches])
    assert_distributed_eq(session, "select d, count(*) as n from words group by d")


def test_trap_21_the_cap_names_the_table(connected: Connected) -> None:
    session = connected({"sparkfusion.memory_table_bytes": "1GiB", "sparkfusion.max_plan_bytes": 50_000})
    _big_table(session)
    with pytest.raises(PlanTooLargeError, match="big") as raised:
        session.sql("select a from big").collect()
    assert "Parquet" in (raised.value.hint or "")


# ---- holes next to the traps


@pytest.mark.parametrize(
    "sql",
    [
        "select a.v, b.v from facts a join events b on a.k = b.k order by a.v, b.v",
        "select * from facts a full join events b on a.k = b.k",
        "select a.v, b.v, c.v from facts a join events b on a.k = b.k join single c on c.k = b.k where a.v < b.v + c.v",
        "select distinct on (k) k, v from facts order by k, v desc",
    ],
)
def test_columns_of_the_same_name_cross_an_exchange(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)
    assert_distributed_eq(connected(PARTITIONED_JOINS), sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select f.k, q.w from facts f, (select 100 / count(*) as w from events where v > 3) q",
        "select 100 / count(*) as a from facts where v > 3 union all select v from events",
    ],
)
def test_planning_computes_nothing_on_empty_input(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)


def test_a_function_is_not_called_while_planning(connected: Connected, tmp_path: Path) -> None:
    session = connected()
    calls = tmp_path / "calls"  # a file: the function travels inside the plan as a copy
    calls.touch()

    def spy(column: pa.Array) -> pa.Array:
        with calls.open("a") as file:
            file.writelines(f"{value} " for value in column.to_pylist())
        return column

    session.register_udf(udf(spy, [pa.int64()], pa.int64(), "immutable", name="spy"))
    frame = session.sql("select f.k, q.w from facts f, (select spy(count(*)) as w from events where v > 3) q")
    assert frame.distribution().distributed
    assert calls.read_text() == ""
    assert frame.collect().column("w").unique().to_pylist() == [58]
    assert calls.read_text() == "58 "


def test_a_panic_in_a_task_ends_the_query(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code that panics raises a `BaseException`; the reader must hear of it."""

    class PanicError(BaseException):
        pass

    def panic(*args: object) -> None:
        raise PanicError("index out of bounds")

    monkeypatch.setattr("sparkfusion.runner.job.run_task", panic)
    (error,) = run_alone(connected({"sparkfusion.task_retries": 0}), "select v from facts", seconds=5.0)
    assert not isinstance(error, QueryCancelledError)
    assert "index out of bounds" in str(error)
