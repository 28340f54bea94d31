"""The runners that behaviour tests run on, and which test runs on which.

A test that takes `connect` or `connect_shared` runs once on each; its id says on which, so `-k spark-shared` or
`-k "not spark"` chooses. Where a test proves something about some runners only, it says so, and why:

    pytestmark = pytest.mark.runners("local", reason="looks at threads of this process")

Who names `flight` means workers, however many: behaviour tests run on two of them and on three.

`make test` runs a test in process and on two workers. On the other runners it is marked `long` and runs in
`make test-long`. A test that is about what differs elsewhere names the runners of `make test` itself, and so does one
for which fewer runners do. The nearest mark counts:

    pytestmark = pytest.mark.sample("local", "flight", "spark-local")

These runners split every query: a task is one partition, which isolates most. By default, a task has all cores of its
machine, and if there is one machine, it runs the whole plan. A test that should hold for any width says so, and then
runs on the runners of `WIDE` too, where it is long except for whole plans in process. Every verification runs the whole
plan too: that is its round-trip leg.

    pytestmark = pytest.mark.any_width
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

LOCAL = "local"
FLIGHT = "flight"
FLIGHT_3 = "flight-3"
RESIDENT = "spark-resident"
CONNECT = "connect"
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
    CONNECT: {**SPLIT, **ALL_ON_SPARK},  # a Spark Connect server of the run, on this machine
}
"""Each runner's name and the settings that make it."""

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
    CONNECT: "spark-local",
}
"""The runner whose name a mark uses for these."""
BEHAVIOUR = Path(__file__).parent / "behaviour"
_ABOUT_TASKS = frozenset(
    {
        "test_files.py",
        "test_functions.py",
        "test_join_decisions.py",
        "test_key_sets.py",
        "test_leftovers.py",
        "test_memory.py",
        "test_queries.py",
        "test_replay.py",
        "test_stopping.py",
    }
)
_ABOUT_EXCHANGES = _ABOUT_TASKS | {
    "test_cancel.py",
    "test_joins.py",
    "test_lack_of_memory.py",
    "test_memory_tables.py",
    "test_shapes.py",
    "test_streaming.py",
    "test_subqueries_and_limits.py",
    "test_unions_and_order.py",
    "test_writing.py",
}
_ABOUT_JOBS = frozenset(
    {
        "test_cancel.py",
        "test_conformance.py",
        "test_functions.py",
        "test_join_decisions.py",
        "test_leftovers.py",
        "test_queries.py",
        "test_replay.py",
        "test_streaming.py",
        "test_write_modes.py",
    }
)
_SAMPLES: Mapping[str, frozenset[str]] = {
    RESIDENT: _ABOUT_TASKS,  # these are the workers of `flight`
    FLIGHT_3: _ABOUT_EXCHANGES,  # one worker more than `flight`
    "spark-shared": _ABOUT_EXCHANGES,  # files as in `spark-local`, in another directory
    CONNECT: _ABOUT_JOBS,  # tasks as in `spark-local`, started in another way
}
"""Runners that are like another one, but for little. Of the behaviour tests, they run those that are about that."""
_CONNECT_SAMPLE = frozenset({"test_conformance.py"})
"""The behaviour tests that `make test` runs on Spark Connect."""
MARKERS = (
    'runners(*names, reason="..."): the runners that the test is about, and why not all; marks add up',
    "sample(*names): `make test` runs the test on these runners, instead of in process and on two workers",
    "any_width: the test also holds for tasks of several partitions, and runs on those runners too",
    "long: `make test-long` runs the test, and `make test` leaves it out",
)


@dataclass(frozen=True)
class Runner:
    """What sessions of a test connect to, and the settings that they begin with."""

    name: str
    target: object = None
    settings: Mapping[str, object] = field(default_factory=dict)


EMBEDDED = Runner(LOCAL, settings=SPLIT)


def chosen_for(test: pytest.Function) -> list[str]:
    """The runners that a test function is about: those that every `runners` mark on it and around it names."""
    marks = list(test.iter_markers("runners"))
    wide = WIDE if test.get_closest_marker("any_width") is not None else ()
    return [
        name
        for name in (*NAMES, *wide)
        if _is_worth_it(name, test) and all(_SPLIT_LIKE.get(name, name) in _named_by(mark, test) for mark in marks)
    ]


def _is_worth_it(name: str, test: pytest.Function) -> bool:
    """Whether a test may find something on this runner that it does not find on another one."""
    if BEHAVIOUR not in test.path.parents:
        return name not in (FLIGHT_3, RESIDENT, CONNECT)
    return name not in _SAMPLES or test.path.name in _SAMPLES[name]


def parameters_for(test: pytest.Function) -> list[ParameterSet]:
    """The names of a test function's runners, marked as long where only `make test-long` runs it."""
    names = chosen_for(test)
    mark = test.get_closest_marker("sample")
    sample = (LOCAL, FLIGHT) if mark is None else _checked(mark, test)
    sample += (LOCAL_WHOLE,) if LOCAL in sample else ()
    sample += (CONNECT,) if BEHAVIOUR in test.path.parents and test.path.name in _CONNECT_SAMPLE else ()
    return [pytest.param(name, marks=[] if name in sample else [pytest.mark.long]) for name in names]


def some_first(cases: Mapping[str, str], first: Collection[str]) -> list[ParameterSet]:
    """Cases by their ids. `make test` runs the first ones only."""
    return [
        pytest.param(case, id=name, marks=[] if name in first else [pytest.mark.long]) for name, case in cases.items()
    ]


def runner_of(item: pytest.Item) -> str | None:
    """The name of the runner that a test uses; None if it uses none, or one of its own."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("runner_name") if callspec is not None else None


def needs_spark(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return (runner_of(item) or "") in (*ON_SPARK, CONNECT) or "spark" in fixtures or "remote_spark" in fixtures


def in_order(items: list[pytest.Item], *, spark_first: bool = False) -> list[pytest.Item]:
    """Everything without Spark first, so that one JVM serves all that need one; then one runner after another.

    A runner stays until the end of the run, with what it adds to the check for leftovers: tests without one go first.

    Args:
        spark_first: for two processes that share the modules: the slowest ones come first.
    """
    ranks = {name: rank for rank, name in enumerate((None, *NAMES, *WIDE))}
    return sorted(items, key=lambda item: (needs_spark(item) != spark_first, ranks[runner_of(item)]))


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
