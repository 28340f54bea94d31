"""Ids of queries, stages, tasks and attempts, which are sent between processes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

QueryId = str
StageId = int
ExchangeId = int
FeedId = int
TableId = int


@dataclass(frozen=True)
class SourceFile:
    """A file as a scan needs it: an absolute path and its size."""

    path: str
    size: int


def new_query_id() -> QueryId:
    """A short id, unique enough to name directories and log lines."""
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True, order=True)
class TaskKey:
    """One attempt at one task. The attempt is part of every file name, so two attempts never share a file.

    >>> print(TaskKey("q", stage=1, task=0))
    query q, stage 1, task 0, attempt 0
    """

    query: QueryId
    stage: StageId
    task: int
    attempt: int = 0

    def __str__(self) -> str:
        return f"query {self.query}, stage {self.stage}, task {self.task}, attempt {self.attempt}"
