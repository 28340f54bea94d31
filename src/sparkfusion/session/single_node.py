"""A query that is not distributed: DataFusion runs it whole, in this process, as its user configured it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Mapping

import datafusion
import pyarrow as pa

from sparkfusion.config import Settings
from sparkfusion.errors import QueryCancelledError, classify
from sparkfusion.exchange.channel import Channel, ChannelClosedError
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.worker import loops
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.limits import memory_share, spill_directory
from sparkfusion.worker.run_task import PrepareContext
from sparkfusion.worker.session import task_context
from sparkfusion.worker.task import TaskReport

_CAPACITY = 8
_PATIENCE_SECONDS = 10.0


class SingleNode:
    """Where queries of a session run that are not distributed: under the memory limits that tasks have.

    They share one context, and so its memory and its caches of files, until a setting changes. A chosen directory
    for spilled rows is shared by none: DataFusion keeps a directory in it as long as the context lives.
    """

    def __init__(self, prepare: PrepareContext) -> None:
        self._prepare = prepare
        self._lock = threading.Lock()
        self._shared: dict[tuple[object, ...], datafusion.SessionContext] = {}
        self.close = weakref.finalize(self, self._shared.clear)  # with a context goes its directory of spilled rows

    def limit(
        self, frame: datafusion.DataFrame, settings: Settings, options: Mapping[str, str]
    ) -> datafusion.DataFrame:
        """The same query, to be run with the memory of all slots."""
        memory = memory_share(settings, options, alone=True)
        place = spill_directory(settings, options)
        if place:
            context = task_context(options, memory_limit=memory, spill_directory=place)
        else:
            with self._lock:
                context = self._context(options, memory)
        self._prepare(context)
        return context.create_dataframe_from_logical_plan(frame.logical_plan())

    def _context(self, options: Mapping[str, str], memory: int) -> datafusion.SessionContext:
        key = (memory, *options.items())
        if key not in self._shared:
            self._shared.clear()
            self._shared[key] = task_context(options, memory_limit=memory)
        return self._shared[key]


class SingleNodeJob:
    """The same handle as a distributed job has, over DataFusion's own stream.

    The stream is drained on a thread of its own, so that Ctrl-C and `cancel` reach a reader that waits.
    """

    def __init__(self, frame: datafusion.DataFrame) -> None:
        self._channel = Channel(_CAPACITY)
        self._token = CancelToken()
        self._thread = threading.Thread(target=self._run, args=(frame,), name="sparkfusion-single-node", daemon=True)
        self._thread.start()

    def next_frame(self) -> pa.RecordBatch | None:
        try:
            return self._channel.get()
        except ChannelClosedError:
            raise QueryCancelledError("the query was closed while its rows were read") from None

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._channel.finish(QueryCancelledError(reason))
        self._token.cancel()

    def close(self) -> None:
        self._channel.close()
        self._token.cancel()
        self._thread.join(_PATIENCE_SECONDS)

    def reports(self) -> list[TaskReport]:
        return []

    def feeds(self) -> list[FeedStats]:
        return []

    def _run(self, frame: datafusion.DataFrame) -> None:
        try:
            loops.run(self._drain(frame))
        except (asyncio.CancelledError, ChannelClosedError):
            self._channel.finish(QueryCancelledError("the query was cancelled"))
        except BaseException as error:
            self._channel.finish(classify(error))
        else:
            self._channel.finish()

    async def _drain(self, frame: datafusion.DataFrame) -> None:
        loop, work = asyncio.get_running_loop(), asyncio.current_task()
        assert work is not None
        self._token.watch(lambda: loop.call_soon_threadsafe(work.cancel))
        try:
            async for batch in frame.execute_stream():
                self._channel.put(batch.to_pyarrow())
        finally:
            self._token.watch(None)
