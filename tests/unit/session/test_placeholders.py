"""Placeholder files of a session's tables, made by several threads."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest
from datafusion import SessionContext

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.session import placeholders
from sparkfusion.session.placeholders import Placeholders
from sparkfusion.session.session_schema import SessionSchema
from tests.suites.watched_lock import WatchedLock

PATIENCE = 30.0


class Feeds:
    """Makes tables of one column, and keeps what queries would read."""

    def __init__(self) -> None:
        self.placeholders = Placeholders("feeds", SessionSchema(SessionContext()))
        self._read: list[datafusion.DataFrame] = []

    def make(self, number: int) -> None:
        columns = pa.schema({"v": pa.int64()})
        _, dataframe = self.placeholders.place(SessionContext(), f"t{number}", number, columns, 2, self._forget)
        self._read.append(dataframe)

    def files(self) -> set[str]:
        home = self.placeholders.home
        assert home is not None
        return {str(file.relative_to(home)) for file in home.glob("*/*.arrow")}

    def _forget(self, number: int) -> None:
        """Nothing is known of it besides."""


def test_the_first_tables_of_two_threads_both_keep_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second thread comes while the first one makes the directory of all tables."""
    feeds, lock, first_is_done = Feeds(), WatchedLock(), threading.Event()
    feeds.placeholders._making_home = lock  # type: ignore[assignment]
    first, second = iter([True]), list[Future[None]]()

    def make_directory(purpose: str, base: Path) -> OwnedDirectory:
        if next(first, False):
            second.append(pool.submit(feeds.make, 2))
            assert lock.contended.wait(PATIENCE)
        else:  # it did not wait
            lock.contended.set()
            assert first_is_done.wait(PATIENCE)
        return OwnedDirectory(purpose, base)

    monkeypatch.setattr(placeholders, "OwnedDirectory", make_directory)
    with ThreadPoolExecutor(1) as pool, closing(feeds.placeholders):
        feeds.make(1)
        first_is_done.set()
        second[0].result(PATIENCE)
        assert feeds.files() == {f"{number}/00000{part}.arrow" for number in (1, 2) for part in (0, 1)}
