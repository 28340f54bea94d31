"""The runners that behaviour tests run on, and which test runs on which.

A test that takes `connect` or `connect_shared` runs once on each; its id says on which, so `-k spark-shared` or
`-k "not spark"` chooses. Where a test proves something about some runners only, it says so, and why:

    pytestmark = pytest.mark.runners("local", reason="looks at threads of this process")

Who names `flight` means workers, however many: behaviour tests run on two of them and on three.

`make test` runs a test in process, and those of `_ABOUT_WORKERS` also on two workers. On other runners it is marked
`long` and runs in `make test-long`. A test that is about what differs elsewhere names the runners of `make test`
itself, and so does one for which fewer runners do. The nearest mark counts:

    pytestmark = pytest.mark.sample("local", "flight", "spark-local")

These runners split every query: a task is one partition, which isolates most. By default, a task has all cores of its
machine, and if there is one machine, it runs the whole plan. A test that should hold for any width says so, and then
runs on the runners of `WIDE` too, where it is long except for whole plans in process. Every verification runs the whole
plan too: that is its round-trip leg.

    pytestmark = pytest.mark.any_width

`pytest --standalone tests/behaviour` runs the same tests on a standalone Spark cluster instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

LOCAL = "local"
FLIGHT = "flight"
FLIGHT_3 = "flight-3"
RESIDENT = "spark-resident"
SPARK_MAIL = "spark-mail"
CONNECT = "connect"
STANDALONE = "standalone"
ALL_ON_SPARK = {"sparkfusion.small_stage_bytes": 0}  # what tests read is small, and would run in the driver
SPLIT = {"sparkfusion.task_cores": 1}  # one partition a task, also on one machine
RUNNERS: Mapping[str, Mapping[str, object]] = {
    LOCAL: SPLIT,
    FLIGHT: SPLIT,  # two worker processes of the run
    FLIGHT_3: SPLIT,  # three; for behaviour tests
    "spark-local": {"sparkfusion.store": "local", **SPLIT, **ALL_ON_SPARK},
    "spark-shared": {"sparkfusion.store": "shared", **SPLIT, **ALL_ON_SPARK},  # and a directory of the run
    "spark-spark": {"sparkfusion.store": "spark", **SPLIT, **ALL_ON_SPARK},
    RESIDENT: {"sparkfusion.spark_mode": "resident", **SPLIT, **ALL_ON_SPARK},  # one worker; others run as jobs
    SPARK_MAIL: {"sparkfusion.store": "local", "sparkfusion.feed_transport": "mailbox", **SPLIT, **ALL_ON_SPARK},
    CONNECT: {**SPLIT, **ALL_ON_SPARK},  # a Spark Connect server of the run, on this machine
}
"""Each runner's name and the settings that make it."""

CLUSTERS: Mapping[str, Mapping[str, object]] = {
    STANDALONE: {"sparkfusion.store": "spark", **SPLIT, **ALL_ON_SPARK},  # two executors with one core each
}
"""Runners that only a run with `--standalone` has, and then no others: a process has one classic Spark."""

LOCAL_WHOLE, FLIGHT_WHOLE, SPARK_WHOLE = "local-whole", "flight-whole", "spark-whole"
LOCAL_WIDE, FLIGHT_WIDE = "local-wide", "flight-wide"
TWO_BY_TWO = {"sparkfusion.tasks": 2, "sparkfusion.task_cores": 2}
WIDE: Mapping[str, Mapping[str, object]] = {
    LOCAL_WHOLE: {},
    FLIGHT_WHOLE: {},  # one worker
    SPARK_WHOLE: ALL_ON_SPARK,
    LOCAL_WIDE: TWO_BY_TWO,
    FLIGHT_WIDE: TWO_BY_TWO,  # two workers
}
"""Runners with tasks of several partitions, and the settings that make them."""
WHOLE = (LOCAL_WHOLE, FLIGHT_WHOLE, SPARK_WHOLE)
IN_SHUFFLE = ("spark-spark", STANDALONE)
"""Runners with frames in Spark's own shuffle."""

NAMES = tuple(RUNNERS)
WORKERS = {FLIGHT: 2, FLIGHT_3: 3, FLIGHT_WHOLE: 1, FLIGHT_WIDE: 2}
SPARK = tuple(name for name in NAMES if name.startswith("spark-"))
ON_SPARK = (*SPARK, SPARK_WHOLE)
_SPLIT_LIKE = {
    FLIGHT_3: FLIGHT,
    LOCAL_WHOLE: LOCAL,
    LOCAL_WIDE: LOCAL,
    FLIGHT_WHOLE: FLIGHT,
    FLIGHT_WIDE: FLIGHT,
    SPARK_WHOLE: "spark-local",
    SPARK_MAIL: "spark-local",
    CONNECT: "spark-local",
    STANDALONE: "spark-spark",
}
"""The runner whose name a mark uses for these."""
BEHAVIOUR = Path(__file__).parent / "behaviour"
DIFFERENTIAL = Path(__file__).parent / "differential"
_ABOUT_PLANS = frozenset(
    {
        "test_bad_lines.py",
        "test_beside_the_traps.py",
        "test_dataframe.py",
        "test_depth.py",
        "test_directories.py",
        "test_explain.py",
        "test_function_names.py",
        "test_verify_rules.py",
        "test_lost_file_options.py",
        "test_maps.py",
        "test_not_distributed.py",
        "test_partition_values.py",
        "test_scans.py",
        "test_session.py",
        "test_skipped_lines.py",
        "test_statements.py",
        "test_swapped_joins.py",
        "test_table_writes.py",
        "test_upstream_guards.py",
        "test_what_plans_carry.py",
        "test_wire_losses.py",
    }
)
"""Behaviour tests of what is decided before a task starts: what SQL, settings and files become. Every runner gets the
same plans. So these tests run in process and on two workers only."""
_ON_PLANS = (LOCAL, LOCAL_WHOLE, LOCAL_WIDE, FLIGHT)
_ABOUT_TASKS = frozenset(
    {
        "test_files.py",
        "test_functions.py",
        "test_leftovers.py",
        "test_memory.py",
        "test_queries.py",
        "test_replay.py",
        "test_stopping.py",
    }
)
_ABOUT_WORKERS = (_ABOUT_TASKS - {"test_files.py"}) | {
    "test_cancel.py",
    "test_event_log.py",
    "test_events.py",
    "test_exit.py",
    "test_provider_errors.py",
    "test_streaming.py",
    "test_tasks.py",
}
"""Behaviour tests that `make test` also runs on two workers, because tasks in other processes may do it differently."""
_ABOUT_WIDTH = frozenset({"test_cancel.py", "test_functions.py", "test_lack_of_memory.py", "test_queries.py"})
_ABOUT_ROUTES = frozenset(
    {
        "test_joins.py",
        "test_leftovers.py",
        "test_queries.py",
        "test_replay.py",
        "test_shapes.py",
        "test_unions_and_order.py",
    }
)
_ABOUT_DIRECTORIES = frozenset({"test_leftovers.py", "test_memory.py", "test_queries.py"})
_DECISIONS = frozenset({"test_join_decisions.py", "test_key_sets.py"})
_ABOUT_ANSWERS = frozenset(
    {
        "test_joins.py",
        "test_memory_tables.py",
        "test_shapes.py",
        "test_subqueries_and_limits.py",
        "test_unions_and_order.py",
    }
)
_ABOUT_EXCHANGES = (
    _ABOUT_TASKS
    | _ABOUT_ROUTES
    | _ABOUT_DIRECTORIES
    | _DECISIONS
    | {
        "test_cancel.py",
        "test_lack_of_memory.py",
        "test_memory_tables.py",
        "test_streaming.py",
        "test_subqueries_and_limits.py",
    }
)
_ABOUT_JOBS = frozenset(
    {
        "test_cancel.py",
        "test_functions.py",
        "test_leftovers.py",
        "test_queries.py",
        "test_replay.py",
        "test_streaming.py",
        "test_write_modes.py",
    }
)
_ABOUT_UNITS = frozenset({"test_provider_errors.py", "test_replay.py", "test_stopping.py"})
_SAMPLES: Mapping[str, frozenset[str]] = {
    RESIDENT: _ABOUT_TASKS - {"test_memory.py", "test_replay.py"},  # these are the workers of `flight`
    "spark-local": frozenset(path.name for path in BEHAVIOUR.rglob("test_*.py"))
    - _DECISIONS
    - _ABOUT_ANSWERS,  # as in `spark-spark`, where rows take a longer way
    FLIGHT_3: _ABOUT_ROUTES,  # one worker more than `flight`
    FLIGHT_WHOLE: _ABOUT_WIDTH,  # plans as in `local-whole`
    FLIGHT_WIDE: _ABOUT_WIDTH,  # plans as in `local-wide`
    SPARK_WHOLE: _ABOUT_WIDTH,  # plans as in `local-whole`
    "spark-shared": _ABOUT_DIRECTORIES,  # files as in `spark-local`, in another directory
    "spark-spark": _ABOUT_EXCHANGES | _ABOUT_JOBS,  # `spark-local` with frames in Spark's shuffle
    SPARK_MAIL: _ABOUT_UNITS,  # as in `spark-local`, but units are files
    CONNECT: _ABOUT_JOBS - {"test_replay.py"},  # tasks as in `spark-local`, started in another way
    STANDALONE: _ABOUT_JOBS | {"test_joins.py", "test_shapes.py", "test_unions_and_order.py"},  # as in `spark-spark`
}
"""Runners that are like another one, but for little. Of the behaviour tests, they run those that are about that."""
NAMED_FILES = _ABOUT_PLANS.union(_ABOUT_WORKERS, *_SAMPLES.values())
MARKERS = (
    'runners(*names, reason="..."): the runners that the test is about, and why not all; marks add up',
    "sample(*names): `make test` runs the test on these runners",
    "any_width: the test also holds for tasks of several partitions, and runs on those runners too",
    "long: `make test-long` runs the test, and `make test` leaves it out",
)


@dataclass(frozen=True)
class Runner:
    """What sessions of a test connect to, and the settings that they begin with.

    Attributes:
        watched: directories, and patterns of files there, that a test on this runner must leave as they were.
    """

    name: str
    target: object = None
    settings: Mapping[str, object] = field(default_factory=dict)
    watched: tuple[tuple[Path, str], ...] = ()


EMBEDDED = Runner(LOCAL, settings=SPLIT)


def chosen_for(test: pytest.Function) -> list[str]:
    """The runners that a test function is about: those that every `runners` mark on it and around it names."""
    marks = list(test.iter_markers("runners"))
    wide = WIDE if test.get_closest_marker("any_width") is not None else ()
    names = CLUSTERS if test.config.getoption("--standalone") else (*NAMES, *wide)
    return [
        name
        for name in names
        if _is_worth_it(name, test) and all(_SPLIT_LIKE.get(name, name) in _named_by(mark, test) for mark in marks)
    ]


def _is_worth_it(name: str, test: pytest.Function) -> bool:
    """Whether a test may find something on this runner that it does not find on another one."""
    if BEHAVIOUR not in test.path.parents:
        return name not in (FLIGHT_3, RESIDENT, SPARK_MAIL, CONNECT)
    if test.path.name in _ABOUT_PLANS:
        return name in _ON_PLANS
    return name not in _SAMPLES or test.path.name in _SAMPLES[name]


def parameters_for(test: pytest.Function) -> list[ParameterSet]:
    """The names of a test function's runners, marked as long where only `make test-long` runs it."""
    names = chosen_for(test)
    mark = test.get_closest_marker("sample")
    is_about_workers = BEHAVIOUR not in test.path.parents or test.path.name in _ABOUT_WORKERS
    usual = (LOCAL, FLIGHT) if is_about_workers else (LOCAL,)
    sample = usual if mark is None else _checked(mark, test)
    sample += (LOCAL_WHOLE,) if LOCAL in sample else ()
    return [pytest.param(name, marks=[] if name in sample else [pytest.mark.long]) for name in names]


def some_first(cases: Mapping[str, Any], first: Collection[str]) -> list[ParameterSet]:
    """Cases by their ids; a tuple is several arguments. `make test` runs the first ones only."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=name,
            marks=[] if name in first else [pytest.mark.long],
        )
        for name, case in cases.items()
    ]


def runner_of(item: pytest.Item) -> str | None:
    """The name of the runner that a test uses; None if it uses none, or one of its own."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("runner_name") if callspec is not None else None


def needs_spark(item: pytest.Item) -> bool:
    return (runner_of(item) or "") in (*ON_SPARK, CONNECT, STANDALONE) or _uses(item, "spark", "remote_spark")


def _uses(item: pytest.Item, *fixtures: str) -> bool:
    return not set(fixtures).isdisjoint(getattr(item, "fixturenames", ()))


def in_order(items: list[pytest.Item], *, spark_first: bool = False) -> list[pytest.Item]:
    """Everything without Spark first, so that one JVM serves all that need one; then one runner after another.

    A runner stays until the end of the run, so tests without one go first.

    Args:
        spark_first: for processes that share the modules: those that take longest come first, so clusters before Spark,
            Spark before workers, and whole suites of queries before the rest. A long module must not start last.
    """
    ranks = {name: rank for rank, name in enumerate((None, *NAMES, *WIDE, *CLUSTERS))}

    def place(item: pytest.Item) -> tuple[bool, bool, bool, bool, int]:
        waits = spark_first and not _uses(item, "cluster", "wide_cluster")
        after_workers = spark_first and runner_of(item) not in WORKERS
        after_suites = spark_first and DIFFERENTIAL not in item.path.parents
        return waits, needs_spark(item) != spark_first, after_workers, after_suites, ranks[runner_of(item)]

    return sorted(items, key=place)


def _named_by(mark: pytest.Mark, test: pytest.Function) -> tuple[str, ...]:
    if not mark.kwargs.get("reason"):
        raise pytest.UsageError(f"{test.nodeid}: @pytest.mark.runners: it takes names and a reason")
    return _checked(mark, test)


def _checked(mark: pytest.Mark, test: pytest.Function) -> tuple[str, ...]:
    unknown = set(mark.args) - set(RUNNERS)
    if unknown or not mark.args:
        wrong = f"unknown runner {', '.join(map(repr, unknown))}" if unknown else "it takes names of runners"
        raise pytest.UsageError(f"{test.nodeid}: @pytest.mark.{mark.name}: {wrong}")
    return mark.args
