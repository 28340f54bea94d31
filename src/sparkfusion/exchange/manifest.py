"""Manifests: the files that finished attempts wrote. Only the manifest of a committed attempt is ever read."""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.ids import TaskKey


@dataclass(frozen=True)
class FrameFile:
    """One Arrow IPC file of frames of one output partition."""

    path: str
    partition: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The frame files of one attempt, in the order they were written. A partition without rows has no file."""

    key: TaskKey
    files: tuple[FrameFile, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)
