"""Workers for tests of transports: in this process, and as processes that may be killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.worker_processes import WorkerProcess

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    """Start worker processes: `start_worker("--slots", "1", name="a", port=…)`; they end with the test."""
    with ExitStack() as stack:
        started = 0

        def start(*options: str, name: str = "", port: int = 0) -> WorkerProcess:
            nonlocal started
            started += 1
            directory = tmp_path / (name or f"worker-{started}")
            return stack.enter_context(WorkerProcess(directory, *options, port=port))

        yield start
