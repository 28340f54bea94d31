"""Fetch a task's inputs: frames that another worker has are streamed into local files."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from sparkfusion.errors import ExternalError, LostInputError
from sparkfusion.exchange.store import FrameStore
from sparkfusion.ids import ExchangeId, QueryId, SourceFile, TaskKey
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.server.frame_names import attempt_of_frame, split_frame_address
from sparkfusion.worker.task import Fetched, TaskInput

FileChunk = tuple[int, pa.Buffer]
"""Some bytes of the file at that place of a list."""
FindHere = Callable[[str], Path | None]


class FrameSource(Protocol):
    """The part of a worker that other workers use."""

    def read(
        self, query: QueryId, secret: str, names: Sequence[str], cancel: CancelToken, patience: float
    ) -> Iterator[FileChunk]:
        """The bytes of files that tasks of the query reported, file after file, in pieces.

        At most a few pieces wait for a slow caller. May be repeated. Raises `LostInputError` if a file is not there, or
        if nothing came for `patience` seconds; files that were not complete then have to be read again.
        """
        ...

    def close(self) -> None: ...


Peers = Callable[[str], FrameSource]


class InputFetcher:
    """Fetches the inputs of one query's tasks into a store. Any thread may call any method.

    `remove_inputs` removes the inputs of a task. Shared inputs are fetched once and stay as long as the store.
    """

    def __init__(self, query: QueryId, secret: str, store: FrameStore, peers: Peers, patience: float) -> None:
        self._query = query
        self._secret = secret
        self._store = store
        self._peers = peers
        self._patience = patience
        self._lock = threading.Lock()
        self._locks: dict[ExchangeId, threading.Lock] = {}
        self._shared: dict[str, SourceFile] = {}

    def bring(
        self,
        key: TaskKey,
        inputs: Sequence[TaskInput],
        here: str,
        find: FindHere,
        cancel: CancelToken,
        shared: Sequence[ExchangeId] = (),
    ) -> tuple[tuple[TaskInput, ...], tuple[Fetched, ...]]:
        """The same inputs with local paths, and what had to be fetched. `find` has the paths of files `here`."""
        brought: dict[str, SourceFile] = {}
        tallies: dict[ExchangeId, Fetched] = {}
        for exchange in dict.fromkeys(each.exchange for each in inputs):
            files = dict.fromkeys(file for each in inputs if each.exchange == exchange for file in each.files)
            elsewhere = self._find_here(files, here, find, brought)
            if exchange in shared:
                with self._lock_of(exchange):
                    for file in [file for file in elsewhere if file.path in self._shared]:
                        brought[file.path] = self._shared[file.path]
                        elsewhere.remove(file)
                    owner = TaskKey(self._query, 0, exchange, 0)  # stage 0 is the head's, which shares nothing
                    made, tally = self._fetch(owner, exchange, elsewhere, cancel)
                    self._shared.update(made)
            else:
                made, tally = self._fetch(key, exchange, elsewhere, cancel)
            brought.update(made)
            if elsewhere:
                tallies[exchange] = tally
        local = tuple(replace(each, files=tuple(brought[file.path] for file in each.files)) for each in inputs)
        return local, tuple(tallies.values())

    def remove_inputs(self, key: TaskKey) -> None:
        """Remove the files that were fetched for a task that has ended."""
        self._store.discard(key)

    def _find_here(
        self, files: Iterable[SourceFile], here: str, find: FindHere, brought: dict[str, SourceFile]
    ) -> list[SourceFile]:
        elsewhere = []
        for file in files:
            address, name = split_frame_address(file.path)
            if address != here:
                elsewhere.append(file)
                continue
            path = find(name)
            if path is None:
                raise LostInputError(
                    f"worker {here} no longer has file {name} of this query", lost=[attempt_of_frame(name)]
                )
            brought[file.path] = SourceFile(str(path), file.size)
        return elsewhere

    def _fetch(
        self, owner: TaskKey, exchange: ExchangeId, files: Sequence[SourceFile], cancel: CancelToken
    ) -> tuple[dict[str, SourceFile], Fetched]:
        began = time.perf_counter()
        by_address: dict[str, list[SourceFile]] = {}
        for file in files:
            by_address.setdefault(split_frame_address(file.path)[0], []).append(file)
        made: dict[str, SourceFile] = {}
        messages = 0
        for address, wanted in by_address.items():
            names = [split_frame_address(file.path)[1] for file in wanted]
            lost = sorted({attempt_of_frame(name) for name in names})
            try:
                pieces = self._peers(address).read(self._query, self._secret, names, cancel, self._patience)
                paths, count = self._write(owner, names, wanted, pieces)
            except LostInputError as error:
                error.lost = error.lost or tuple(lost)
                raise
            except ExternalError as error:
                raise LostInputError(error.message, lost=lost) from error
            messages += count
            made |= {file.path: SourceFile(str(path), file.size) for file, path in zip(wanted, paths, strict=True)}
        size = sum(file.size for file in files)
        return made, Fetched(exchange, size, messages, time.perf_counter() - began)

    def _write(
        self, owner: TaskKey, names: Sequence[str], files: Sequence[SourceFile], pieces: Iterator[FileChunk]
    ) -> tuple[list[Path], int]:
        """Write the pieces to files, one for each name. The pieces come file after file."""
        paths: list[Path] = []
        messages = 0
        for index, parts in groupby(pieces, key=lambda piece: piece[0]):
            if index != len(paths) or index >= len(names):
                raise LostInputError("frames came in another order than asked for")
            in_memory = self._store.has_memory()
            path = self._store.attempt_directory(owner, in_memory=in_memory) / names[index].replace("/", "_")
            with path.open("wb") as target:
                for _, part in parts:
                    target.write(part)
                    messages += 1
                written = target.tell()
            if in_memory:
                self._store.took(owner, written)
            if written != files[index].size:
                raise LostInputError(f"frames {names[index]} have {written:,} bytes instead of {files[index].size:,}")
            paths.append(path)
        if len(paths) != len(names):
            raise LostInputError(f"frames {names[len(paths)]} did not arrive")
        return paths, messages

    def _lock_of(self, exchange: ExchangeId) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(exchange, threading.Lock())
