"""Inputs that come as rows: the committed attempt's, whole, or a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion.errors import ExternalError, LostInputError, UserError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.runner.spark.chunks import ChunkSpool, Origin, chunks_of, failure_of
from sparkfusion.runner.spark.inputs import take_rows
from sparkfusion.runner.spark.spark_task import ProducerAttempt, RowInput
from sparkfusion.transport.codec import pack_error


@pytest.fixture
def spool(tmp_path: Path) -> ChunkSpool:
    """Task 0 (Spark's attempt 10) wrote partitions 0 and 1, task 1 (Spark's attempt 11) only partition 1."""
    spool = ChunkSpool(tmp_path)
    for origin, partitions in ((Origin(5, 0, 0, 10), (0, 1)), (Origin(5, 1, 0, 11), (1,))):
        files = []
        for partition in partitions:
            path = tmp_path / f"{origin.task}-{partition}.in"
            path.write_text(f"task {origin.task} partition {partition}")
            files.append(FrameFile(str(path), partition, 1, path.stat().st_size))
        for _, row in chunks_of(files, origin, partitions=2):
            spool.add(row)
    return spool


def shuffled(*groups: int, sources: tuple[ProducerAttempt, ...], repeatable: bool = True) -> RowInput:
    return RowInput(5, producer=2, shuffled=True, repeatable=repeatable, groups=groups, sources=sources)


COMMITTED = (ProducerAttempt(0, 0, 10), ProducerAttempt(1, 0, 11))


def test_a_partition_of_a_shuffle_is_read_from_every_source(spool: ChunkSpool) -> None:
    taken = take_rows([shuffled(0, 1, sources=COMMITTED)], spool)
    assert [(each.exchange, each.group) for each in taken.inputs] == [(5, 0), (5, 1)]
    texts = [[Path(file.path).read_text() for file in each.files] for each in taken.inputs]
    assert texts == [["task 0 partition 0"], ["task 0 partition 1", "task 1 partition 1"]]
    assert taken.recomputed == 0


def test_a_gather_keeps_its_sources_apart(spool: ChunkSpool) -> None:
    gather = RowInput(5, producer=2, shuffled=False, repeatable=True, groups=(0, 1, 2), sources=COMMITTED)
    assert [len(each.files) for each in take_rows([gather], spool).inputs] == [1, 0, 0]


def test_a_source_that_did_not_arrive_is_an_error_to_retry(spool: ChunkSpool) -> None:
    with pytest.raises(ExternalError, match="stage 2, task 2 did not arrive") as caught:
        take_rows([shuffled(0, sources=(*COMMITTED, ProducerAttempt(2, 0, 12)))], spool)
    assert caught.value.retryable


def test_rows_of_another_attempt_of_ours_are_not_taken(spool: ChunkSpool) -> None:
    with pytest.raises(ExternalError, match="task 1 did not arrive"):
        take_rows([shuffled(0, sources=(COMMITTED[0], ProducerAttempt(1, attempt=1, spark_attempt=11)))], spool)


def test_a_repeatable_output_may_have_been_made_again(spool: ChunkSpool) -> None:
    taken = take_rows([shuffled(1, sources=(ProducerAttempt(0, 0, 7), COMMITTED[1]))], spool)
    assert taken.recomputed == 1
    assert len(taken.inputs[0].files) == 2


def test_an_output_that_may_differ_must_be_the_committed_one(spool: ChunkSpool) -> None:
    with pytest.raises(LostInputError) as caught:
        take_rows([shuffled(1, sources=(ProducerAttempt(0, 0, 7), COMMITTED[1]), repeatable=False)], spool)
    assert caught.value.lost == ((2, 0, 0),)


def test_the_producers_error_comes_through(spool: ChunkSpool) -> None:
    for _, row in failure_of(pack_error(UserError("divide by zero")), Origin(5, 2, 0, 12), partitions=2):
        spool.add(row)
    with pytest.raises(UserError, match="divide by zero"):
        take_rows([shuffled(0, sources=(*COMMITTED, ProducerAttempt(2, 0, 12)))], spool)
