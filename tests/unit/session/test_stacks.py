"""DataFusion's threads are started once, with more stack, whichever threads open the first sessions."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from sparkfusion.session import stacks
from tests.suites.watched_lock import WatchedLock

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def _new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if nothing had been started yet."""
    monkeypatch.delenv(stacks.VARIABLE, raising=False)
    monkeypatch.setattr(stacks, "_started", threading.Event(), raising=False)
    stacks.has_roomy_stacks.cache_clear()
    yield
    stacks.has_roomy_stacks.cache_clear()


def test_two_threads_that_open_the_first_sessions_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second thread comes while the first one looks whether DataFusion's threads run."""
    lock, starts = WatchedLock(), list[str | None]()
    first, second = iter([True]), list[Future[bool]]()

    class Context:
        def sql(self, query: str) -> None:
            starts.append(os.environ.get(stacks.VARIABLE))

    def look() -> bool:
        if next(first, False):
            second.append(pool.submit(stacks.has_roomy_stacks))
            assert lock.contended.wait(PATIENCE)
            return False
        found = bool(starts)
        lock.contended.set()  # if it did not wait
        return found

    monkeypatch.setattr(stacks, "_starting", lock, raising=False)
    monkeypatch.setattr(stacks, "_tokio_runs", look)
    monkeypatch.setattr(stacks, "SessionContext", Context)
    with ThreadPoolExecutor(1) as pool:
        answers = [stacks.has_roomy_stacks(), second[0].result(PATIENCE), stacks.has_roomy_stacks()]
    assert answers == [True, True, True]
    assert starts == [str(stacks.ROOMY)]
    assert stacks.VARIABLE not in os.environ
