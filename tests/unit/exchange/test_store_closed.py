"""A store is closed while tasks that did not end in time still write."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.exchange.store import SHARED_MEMORY, LocalFrameStore
from sparkfusion.ids import TaskKey, new_query_id

KEY = TaskKey("q", 1, 0)


def test_a_task_that_still_writes_does_not_disturb_the_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = new_query_id()
    store = LocalFrameStore(query, memory_budget=1024, directory=str(tmp_path))
    home = store.attempt_directory(KEY, in_memory=False).parent
    refused: list[BaseException] = []
    close = OwnedDirectory.close

    def write_meanwhile(directory: OwnedDirectory) -> None:
        try:
            store.attempt_directory(KEY, in_memory=True)
        except ChannelClosedError as error:
            refused.append(error)
        close(directory)

    monkeypatch.setattr(OwnedDirectory, "close", write_meanwhile)
    store.close()
    assert refused
    assert not home.exists()
    assert not list(SHARED_MEMORY.glob(f"*{query}*"))
