"""A query that is not distributed: DataFusion runs it as a whole, in this process, with the user's options."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import datafusion
import pyarrow as pa

from sparkfusion.config import Settings
from sparkfusion.config.memory_limits import has_memory_limit, memory_share, spill_directory
from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import Channel, ChannelClosedError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.plan.stage import StageGraph
from sparkfusion.worker import loops, open_work
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.task import TaskReport
from sparkfusion.worker.task_context import PrepareContext, Surroundings, task_context

_CAPACITY = 8
_PATIENCE_SECONDS = 10.0


def limit(
    dataframe: datafusion.DataFrame, settings: Settings, options: Mapping[str, str], prepare: PrepareContext
) -> tuple[datafusion.DataFrame, OwnedDirectory | None]:
    """The same query with the memory limits of tasks: with the memory of all slots, and their spill directory.

    Under a limit that the user set, it runs on one core: if partitions exchange rows in one process and memory is
    short, DataFusion 55 may hang (docs/upstream-defects.md).

    It gets a context of its own, because a context that is kept would remember which files a table had. If a spill
    directory is set, it spills into a directory there that the job removes: DataFusion keeps its own as long as
    anything holds the context.
    """
    memory = memory_share(settings, options, alone=True)
    place = Path(spill_directory(settings, options))
    spills = OwnedDirectory("spills", place.absolute()) if place.name and place.is_dir() else None
    chosen = spill_directory(settings, options) if spills is None else str(spills.path)
    if has_memory_limit(settings, options):
        options = {**options, TARGET_PARTITIONS: "1"}
    context = task_context(options, Surroundings(memory, chosen, prepare=prepare))
    return context.create_dataframe_from_logical_plan(dataframe.logical_plan()), spills


ExplainError = Callable[[SparkfusionError], SparkfusionError | None]
"""Returns a more helpful error, or None; called on the thread that got the error."""


class SingleNodeJob:
    """The same handle as that of a distributed job, over DataFusion's own stream.

    The stream is read on a thread of its own, so that Ctrl-C and `cancel` reach a consumer that waits.
    """

    def __init__(
        self,
        dataframe: datafusion.DataFrame,
        explain_error: ExplainError | None = None,
        spills: OwnedDirectory | None = None,
    ) -> None:
        self._explain_error = explain_error
        self._spills = spills
        self._channel = Channel(_CAPACITY)
        self._token = CancelToken()
        self._thread = threading.Thread(
            target=self._run, args=(dataframe,), name="sparkfusion-single-node", daemon=True
        )
        open_work.add(self)
        self._thread.start()

    def next_frame(self) -> pa.RecordBatch | None:
        return self._channel.next_frame()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._channel.finish(QueryCancelledError(reason))
        self._token.cancel()

    def stop(self) -> None:
        self._channel.close()
        self._token.cancel()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self.stop()
        if self._thread is not threading.current_thread():  # a forgotten stream is collected on any thread, also there
            self._thread.join(_PATIENCE_SECONDS)
        if self._spills is not None:
            self._spills.close()

    def reports(self) -> list[TaskReport]:
        return []

    def graph(self) -> StageGraph | None:
        return None

    def feeds(self) -> list[FeedStats]:
        return []

    def _run(self, dataframe: datafusion.DataFrame) -> None:
        try:
            loops.run(self._drain(dataframe))
        except (asyncio.CancelledError, ChannelClosedError):
            self._channel.finish(QueryCancelledError("the query was cancelled"))
        except BaseException as error:
            found = classify(error)
            with suppress(Exception):
                found = (self._explain_error(found) if self._explain_error is not None else None) or found
            self._channel.finish(found)
        else:
            self._channel.finish()

    async def _drain(self, dataframe: datafusion.DataFrame) -> None:
        loop, work = asyncio.get_running_loop(), asyncio.current_task()
        assert work is not None
        self._token.watch(lambda: loop.call_soon_threadsafe(work.cancel))
        try:
            async for batch in dataframe.execute_stream():
                self._channel.put(batch.to_pyarrow())
        finally:
            self._token.watch(None)
