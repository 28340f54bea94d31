"""Another attempt at a task goes on behind the rows that the reader has, if it begins with them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.runner.passed import AttemptRows, OtherRowsError, PassedRows


def frame(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, pa.int64())})


def words(*values: str) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values).dictionary_encode()})


class Reader:
    def __init__(self, *, resumes: bool = True) -> None:
        self.rows: list[object] = []
        self.passed = PassedRows(self._put, resumes=resumes)

    def _put(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.column("x").to_pylist()

    def attempt(self, *frames: pa.RecordBatch) -> AttemptRows:
        rows = self.passed.attempt()
        for each in frames:
            rows(each)
        return rows


def test_what_the_reader_has_is_not_given_again() -> None:
    reader = Reader()
    reader.attempt(frame(1, 2), frame(3))
    reader.attempt(frame(1, 2), frame(3), frame(4)).finish()
    assert reader.rows == [1, 2, 3, 4]


def test_an_attempt_that_fails_early_changes_nothing() -> None:
    reader = Reader()
    reader.attempt(frame(1), frame(2), frame(3))
    reader.attempt(frame(1))
    reader.attempt(frame(1), frame(2), frame(3), frame(4), frame(5)).finish()
    assert reader.rows == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "second",
    [[frame(2, 1), frame(3)], [frame(1), frame(2, 3)], [frame(1, 2), frame(None)], [frame(1, 2), frame(4)]],
    ids=["another order", "other frames", "a null", "another value"],
)
def test_an_attempt_that_begins_otherwise_ends_the_query(second: list[pa.RecordBatch]) -> None:
    reader = Reader()
    reader.attempt(frame(1, 2), frame(3))
    with pytest.raises(OtherRowsError):
        reader.attempt(*second)
    assert reader.rows == [1, 2, 3]


def test_an_attempt_that_is_shorter_ends_the_query() -> None:
    reader = Reader()
    reader.attempt(frame(1), frame(2))
    with pytest.raises(OtherRowsError):
        reader.attempt(frame(1)).finish()


def test_the_same_places_in_another_dictionary_are_other_rows() -> None:
    reader = Reader()
    reader.attempt(words("a", "b"))
    with pytest.raises(OtherRowsError):
        reader.attempt(words("a", "c"))


def test_a_part_of_a_larger_frame_is_the_same_as_a_frame_of_its_own() -> None:
    reader = Reader()
    reader.attempt(frame(1, 2, 3).slice(1, 2))
    reader.attempt(frame(2, 3), frame(4)).finish()
    assert reader.rows == [2, 3, 4]


def test_only_who_looks_at_frames_can_go_on() -> None:
    assert [Reader(resumes=resumes).passed.final for resumes in (True, False)] == [False, False]
    for resumes in (True, False):
        reader = Reader(resumes=resumes)
        reader.attempt(frame(1))
        assert reader.passed.final is not resumes
