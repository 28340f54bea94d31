"""The simulated cluster: the coordinator's logic at a size that no test could start."""

from __future__ import annotations

import time

import pytest

from benchmarks.scale.simulated import SimulatedCluster, chain_of_shuffles


def test_every_task_reads_what_the_stage_before_wrote() -> None:
    outcome = SimulatedCluster(chain_of_shuffles(stages=5, tasks=20), workers=20, files=10).run()
    assert outcome.ended == "finished"
    assert outcome.attempts == 5 * 20 + 1  # the head
    assert outcome.sources == 4 * 20 * 10 + 20


def test_a_query_ends_although_tasks_fail_and_workers_are_lost() -> None:
    graph = chain_of_shuffles(stages=10, tasks=50)
    outcome = SimulatedCluster(graph, workers=50, failing=0.05, losses=3).run()
    assert outcome.ended == "finished"
    assert outcome.failures > 0
    assert outcome.lost_workers == 3
    assert outcome.attempts > graph.task_count + 1 + outcome.failures  # lost output was made again
    assert len(outcome.committed) == graph.task_count + 1


def test_fewer_workers_take_longer() -> None:
    graph = chain_of_shuffles(stages=3, tasks=40)
    assert SimulatedCluster(graph, workers=5).run().seconds > 4 * SimulatedCluster(graph, workers=40).run().seconds


@pytest.mark.long
def test_an_event_costs_the_same_in_a_large_query() -> None:
    """With 64 times as many tasks. It cost 14 times as much when every event looked at every task."""
    small = min(seconds_an_attempt(stages=5, tasks=25) for _ in range(5))
    large = min(seconds_an_attempt(stages=20, tasks=400) for _ in range(2))
    assert large < 4 * small


def seconds_an_attempt(stages: int, tasks: int) -> float:
    cluster = SimulatedCluster(chain_of_shuffles(stages, tasks), tasks)
    started = time.thread_time()
    attempts = cluster.run().attempts
    return (time.thread_time() - started) / attempts
