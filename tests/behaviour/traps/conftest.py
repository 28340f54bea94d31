"""The traps of isolated execution, each with a query that falls into it. docs/traps.md names the tests of each trap.

`..._without_handling_...` switches the handling off and shows that the answer is then wrong, an error or a hang. That
proves that the other tests can fail.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import sparkfusion.plan.rules as rules_module
from sparkfusion import Session
from sparkfusion.plan.distribute import ISOLATION_OPTIONS
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode, kind, walk
from sparkfusion.session.dataframe import DataFrame
from sparkfusion.verify import compare_tables
from tests.behaviour.probes import PATIENCE
from tests.behaviour.traps.trap_tables import register, write_tables
from tests.conftest import Connect

Connected = Callable[..., Session]

PARTITIONED_JOINS: dict[str, object] = {
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
LOST_GROUPING = "select count(*) as n from facts where v > 3 group by grouping sets (())"


@pytest.fixture(scope="session")
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


def run_alone(session: Session, sql: str, seconds: float) -> list[BaseException]:
    """Run a query on a thread; nothing comes back if it is still running after a while."""
    found: list[BaseException] = []

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
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return [] if was_running else found
