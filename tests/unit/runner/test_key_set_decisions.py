"""When a key set is used: from its exact size, before the scans start that it reduces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.config import ALWAYS
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.first_stages import FirstStages
from sparkfusion.plan.key_set_choice import KeySetPolicy
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import KeySet, StageGraph
from sparkfusion.plan.wire import decode
from sparkfusion.runner.key_set_decisions import KeySetDecision, filters_scans, refuse_key_set
from sparkfusion.runner.machine import Command, OutputLost, RunTasks, Started, TaskSucceeded, transition
from sparkfusion.runner.query_state import Policy, QueryState
from tests.unit.plan.plans import NO_BROADCAST, context

KEYS = KeySet(("k",), values=100)
POLICY = Policy(key_set_bytes=1000, merge_small_partitions=False)


@pytest.mark.parametrize(
    ("rows", "size", "reason"),
    [
        (31, 10, "31% of all keys"),
        (1, 1001, "more than sparkfusion.key_set_bytes (1,000)"),
        (1, 101, "too much for the memory of a task (800 bytes)"),
    ],
    ids=["rows", "bytes", "memory"],
)
def test_a_key_set_is_not_used(rows: int, size: int, reason: str) -> None:
    policy = replace(POLICY, task_memory=800 if size == 101 else POLICY.task_memory)
    assert refuse_key_set(rows, size, KEYS, policy) == reason
    assert refuse_key_set(rows, size, KEYS, replace(policy, key_set_bytes=ALWAYS)) is None


def test_keys_that_only_filter_are_few() -> None:
    filters = replace(KEYS, most=7)
    always = replace(POLICY, key_set_bytes=ALWAYS)
    found = [filters_scans(7, filters, POLICY), filters_scans(8, filters, POLICY), filters_scans(8, filters, always)]
    assert found == [True, False, True]
    assert filters_scans(8, KEYS, POLICY)


def test_at_the_limit_it_is_used() -> None:
    assert refuse_key_set(30, 1000, KEYS, POLICY) is None
    assert refuse_key_set(10_000, 1000, replace(KEYS, values=None), POLICY) is None


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> StageGraph:
    """Stage 1 computes the keys of the small table, stage 2 shuffles it, stage 3 the large one."""
    session = context(NO_BROADCAST)
    directory = tmp_path_factory.mktemp("tables")
    for name, rows in (("small", 100), ("large", 10_000)):
        pq.write_table(pa.table({"k": range(rows), "v": range(rows)}), directory / f"{name}.parquet")
        session.register_parquet(name, str(directory / f"{name}.parquet"))
    sql = "select s.v, l.v as w from small s join large l on s.k = l.k where s.v < 5"
    root = decode(session.sql(sql).execution_plan().to_bytes(session))
    return distribute(root, SchemaProbe(context()), first=FirstStages(KeySetPolicy(least_bytes=1)))


def written(key: TaskKey, rows: int) -> TaskSucceeded:
    path = str(Path(f"{key.stage}-{key.task}"))
    return TaskSucceeded(key, Manifest(key, (FrameFile(path, 0, rows=rows, bytes=rows),)))


def begin(graph: StageGraph, rows: int) -> tuple[QueryState, tuple[Command, ...]]:
    """The query after its first stage wrote so many keys."""
    state, commands = transition(QueryState("q", graph, POLICY), Started())
    (keys,) = [each.producer for each in graph.exchanges if each.key_set is not None]
    started = {command.stage for command in commands if isinstance(command, RunTasks)}
    readers = {stage.id for stage in graph.stages if keys in stage.inputs}
    assert keys in started
    assert readers
    assert not readers & started
    return transition(state, written(TaskKey("q", keys, 0), rows))


@pytest.mark.parametrize(("rows", "used"), [(5, True), (90, False)])
def test_what_reads_the_keys_starts_when_it_is_decided(graph: StageGraph, rows: int, used: bool) -> None:
    state, (decision, *others) = begin(graph, rows)
    assert isinstance(decision, KeySetDecision)
    assert decision.used is used
    assert decision.reason.startswith("key set used: 5 keys (k)" if used else "key set not used: 90 keys (k)")
    assert decision.reason.endswith(", which scans check while they decode rows") is used
    (run,) = [each for each in others if isinstance(each, RunTasks)]
    assert (decision.stage in state.graph.stage(run.stage).inputs) is used
    assert state.graph.stage(decision.stage).decisions == (decision.reason,)


def test_lost_keys_are_computed_again_and_not_decided_again(graph: StageGraph) -> None:
    state, (decision, *_) = begin(graph, 5)
    assert isinstance(decision, KeySetDecision)
    state, commands = transition(state, OutputLost(decision.stage, 0, attempt=0))
    assert [each.stage for each in commands if isinstance(each, RunTasks)] == [decision.stage]
    state, commands = transition(state, written(TaskKey("q", decision.stage, 0, 1), 90))
    assert not [each for each in commands if isinstance(each, KeySetDecision)]
