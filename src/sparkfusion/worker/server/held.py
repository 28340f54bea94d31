"""What a worker holds for one query: its running tasks, the frames they wrote, and the frames fetched for them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sparkfusion.config.machine_limits import frame_memory, machine_memory
from sparkfusion.errors import ExternalError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.exchange.store import SHARED_MEMORY, LocalFrameStore, MemoryBudget
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskStores
from sparkfusion.worker.server.fetch import InputFetcher, Peers
from sparkfusion.worker.server.frame_names import name_of
from sparkfusion.worker.server.slot import Slot
from sparkfusion.worker.server.task_processes import ChildDirectories
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.task import TaskOrder, TaskReport


class HeldQuery:
    """One query on a worker. Any thread may call any method. After `release` no task can start and no file is left.

    Args:
        heard: when the coordinator was last heard of, by the worker's clock.
        on_lost: called if the worker itself releases the query.
    """

    def __init__(
        self,
        query: QueryId,
        secret: str,
        options: WorkerOptions,
        peers: Peers | None,
        heard: float,
        on_lost: Callable[[], None],
    ) -> None:
        self.secret = secret
        self.on_lost = on_lost
        self.heard = heard
        self.lost = False
        self._query = query
        self._options = options
        self._peers = peers
        self._changed = threading.Condition()
        self._tasks: dict[TaskKey, tuple[CancelToken, Slot]] = {}
        self._files: dict[str, Path] = {}
        self._released = False
        self._stores: QueryStores | None = None

    @property
    def running(self) -> int:
        return len(self._tasks)

    @contextmanager
    def task(self, order: TaskOrder, cancel: CancelToken, slot: Slot) -> Iterator[QueryStores]:
        """Register a running task, which may use the stores. If it does not end when the query is released, other tasks
        get its slot."""
        key = order.key
        with self._changed:
            if self._released:
                raise ChannelClosedError
            if key in self._tasks:
                raise ExternalError("this attempt is already running", where=key)
            if self._stores is None:
                self._stores = QueryStores(self._query, self.secret, self._options, order, self._peers)
            stores = self._stores
            self._tasks[key] = cancel, slot
        try:
            yield stores
        finally:
            stores.remove_inputs(key)
            with self._changed:
                self._tasks.pop(key, None)
                self._changed.notify_all()

    def keep(self, report: TaskReport) -> TaskReport:
        """Remember a finished task's files, and return its report with names instead of paths."""
        files = report.manifest.files
        named = tuple(replace(file, path=name_of(report.key, file)) for file in files)
        with self._changed:
            self._files.update({name.path: Path(file.path) for name, file in zip(named, files, strict=True)})
        return replace(report, manifest=replace(report.manifest, files=named))

    def find(self, name: str) -> Path | None:
        return self._files.get(name)

    def discard(self, key: TaskKey) -> None:
        with self._changed:
            token, _ = self._tasks.get(key, (None, None))
            stores = self._stores
            prefix = f"{key.stage}-{key.task}-{key.attempt}/"
            self._files = {name: path for name, path in self._files.items() if not name.startswith(prefix)}
        if token is not None:
            token.cancel()
        if stores is not None:
            stores.discard(key)

    def release(self, *, lost: bool = False) -> None:
        """Stop the tasks, wait for them, and remove everything. Idempotent. `lost`: the worker ends the query."""
        with self._changed:
            self._released = True
            self.lost = self.lost or lost
            tokens = [token for token, _ in self._tasks.values()]
        for token in tokens:
            token.cancel()
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks, self._options.release_seconds)
            for _, slot in self._tasks.values():
                slot.forfeit()
            stores, self._stores = self._stores, None
            self._files = {}
        if stores is not None:
            stores.close()


class QueryStores:
    """The directories of one query. `inputs` is None if there are no other workers to fetch frames from."""

    def __init__(
        self, query: QueryId, secret: str, options: WorkerOptions, order: TaskOrder, peers: Peers | None
    ) -> None:
        memory = MemoryBudget(frame_memory() if order.store_memory < 0 else min(order.store_memory, machine_memory()))
        self._frames = LocalFrameStore(query, memory_budget=memory, directory=options.directory)
        self._fetched = LocalFrameStore(query, memory_budget=memory, directory=options.directory)
        self._disk = LocalFrameStore(query, memory_budget=0, directory=options.directory)
        self._memory = memory
        self._slots = options.slots
        spills = Path(options.spill_directory) if options.spill_directory else self._disk.base
        owned = options.spill_directory is None or options.children is not None
        self._spills = OwnedDirectory(query, spills) if owned else None
        self.spill_directory = str(self._spills.path) if self._spills is not None else options.spill_directory or ""
        self.inputs = InputFetcher(query, secret, self._fetched, peers, order.patience) if peers is not None else None

    def of_task(self) -> TaskStores:
        return TaskStores(self._frames, self._disk)

    @contextmanager
    def child_directories(self, order: TaskOrder) -> Iterator[ChildDirectories]:
        """Directories for a task in a child process. Its frames are removed if it fails, its spills always."""
        key = order.key
        spills = Path(self.spill_directory) / f"{key.stage}-{key.task}-{key.attempt}"
        spills.mkdir()
        in_memory, frames = self._frames.homes() if order.destination == "store" else ("", "")
        writes = self._disk.homes()[1] if order.writes is not None else ""
        try:
            yield ChildDirectories(in_memory, frames, max(0, self._memory.left) // self._slots, writes, str(spills))
        except BaseException:
            self.discard(key)
            raise
        finally:
            shutil.rmtree(spills, ignore_errors=True)

    def count(self, report: TaskReport) -> None:
        """Count the frames that another process wrote to memory-backed storage."""
        size = sum(file.bytes for file in report.manifest.files if Path(file.path).is_relative_to(SHARED_MEMORY))
        self._frames.took(report.key, size)

    def remove_inputs(self, key: TaskKey) -> None:
        """Remove the files that were fetched for a task that has ended."""
        if self.inputs is not None:
            self.inputs.remove_inputs(key)

    def discard(self, key: TaskKey) -> None:
        self._frames.discard(key)
        self._disk.discard(key)

    def close(self) -> None:
        if self._spills is not None:
            self._spills.close()
        for store in (self._frames, self._fetched, self._disk):
            store.close()
