"""Progress as lines of terminals of several sizes."""

from __future__ import annotations

from functools import reduce

import pytest
from rich.cells import cell_len

from sparkfusion.cli.draw_progress import Canvas, draw
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import Event, QueryPlanned, StageStarted, TaskFailed, TaskFinished, TaskRunning
from sparkfusion.observe.progress import ProgressState, advance
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.plan.wire import encode
from sparkfusion.plan.wire import wire_pb2 as pb

WIDE = Canvas(120, 40)


def scan_of(*paths: str) -> bytes:
    scan = pb.PlanNode()
    group = scan.parquet_scan.base_conf.file_groups.add()
    for path in paths:
        group.files.add(path=path)
    return encode(scan)


def running(stages: int, table: str = "data/orders") -> ProgressState:
    """All stages run, with one of four tasks done and one running; after ten seconds."""
    plan = scan_of(f"{table}/0.parquet", f"{table}/1.parquet")
    graph = StageGraph(
        tuple(
            Stage(n, plan, 4, (), n, mergeable=False, deterministic=True, scan_bytes=100) for n in range(1, stages + 1)
        ),
        tuple(Exchange(n, ExchangeKind.GATHER, n, 1, ()) for n in range(1, stages + 1)),
        Head((1,)),
    )
    events: list[Event] = [QueryPlanned("q", stages, 4 * stages, None, 0.0, graph=graph, at=0.0)]
    for number in range(1, stages + 1):
        key = TaskKey("q", number, 0)
        events += [
            StageStarted("q", number, 4, at=0.0),
            TaskFinished("q", key, rows=1_500_000, bytes=2_500_000, seconds=1.0),
            TaskRunning("q", TaskKey("q", number, 1), "w", at=0.0),
        ]
    return reduce(advance, events, ProgressState())


def test_a_stage_has_a_line_with_all_its_figures() -> None:
    first, line = draw(running(1), "", WIDE, now=10.0)
    assert first == "10.0 s  stages 0/1  tasks 1/4  1,500,000 rows  about 30 s left"
    assert line == ("  stage 1  read orders  ━━╌╌╌╌╌╌╌╌  1/4 tasks  1 running  1.5 M rows  2.5 MB  about 30 s left")


def test_failed_attempts_are_told_with_their_stage() -> None:
    state = advance(running(1), TaskFailed("q", TaskKey("q", 1, 1), "lost", retried=True))
    first, line = draw(state, "", WIDE, now=10.0)
    assert first.endswith("  1 failed attempt")
    assert "  1 failed  " in line


@pytest.mark.parametrize("width", [10, 40, 60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    state = running(3, "a/" + "very_long_name_of_a_table_" * 5)
    for line in draw(state, "", Canvas(width, 24), now=10.0):
        assert cell_len(line) <= width


def test_a_narrow_terminal_keeps_what_matters_most() -> None:
    _, line = draw(running(1), "", Canvas(60, 24), now=10.0)
    assert line == "  stage 1  read orders  1/4 tasks"
    _, line = draw(running(1), "", Canvas(70, 24), now=10.0)
    assert line == "  stage 1  read orders  1/4 tasks  about 30 s left"


@pytest.mark.parametrize("height", [1, 2, 3, 4, 6, 10, 24, 100])
def test_hundreds_of_stages_fit_into_the_terminal(height: int) -> None:
    lines = draw(running(150), "", Canvas(100, height), now=10.0)
    assert len(lines) <= max(1, height - 1)
    assert len(lines) <= 14
    if height >= 4:
        shown = sum(line.startswith("  stage ") for line in lines)
        assert shown >= 1
        assert lines[-1] == f"  stages: {150 - shown} more running"


def test_stages_with_running_tasks_come_first_and_stay_in_their_order() -> None:
    state = running(30)
    for number in range(1, 25):
        state = advance(state, TaskFinished("q", TaskKey("q", number, 1), rows=1, bytes=1, seconds=1.0))
    lines = draw(state, "", Canvas(100, 24), now=10.0)
    shown = [int(line.split()[1]) for line in lines if line.startswith("  stage ")]
    assert shown == [*range(1, 7), *range(25, 31)]


def test_names_cannot_move_the_cursor() -> None:
    _, line = draw(running(1, "data/\x1b[2Jevil\rname"), "", WIDE, now=10.0)
    assert "read ?[2Jevil?name" in line


def test_wide_characters_count_twice() -> None:
    state = running(1, "data/" + "表" * 30)
    _, line = draw(state, "", Canvas(60, 24), now=10.0)
    assert cell_len(line) <= 60
    assert line.endswith("1/4 tasks")
    assert "…" in line


def test_a_terminal_without_unicode_gets_ascii() -> None:
    lines = draw(running(1, "data/" + "é" * 90), "", Canvas(100, 24, has_unicode=False), now=10.0)
    assert all(line.isascii() for line in lines)
    assert "..." in lines[1]


def test_a_query_on_a_single_node_has_one_line() -> None:
    state = advance(ProgressState(), QueryPlanned("q", 0, 0, "it is small", 0.0, at=0.0))
    assert draw(state, "", WIDE, now=2.0) == ["2.0 s  single node"]
