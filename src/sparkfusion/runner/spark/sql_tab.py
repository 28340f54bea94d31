"""Entries of our queries in the *SQL / DataFrame* tab of Spark's user interface, and in Spark's event log.

Spark makes an entry from events that the driver posts. So the events of our queries are posted too, over the same
connection that starts jobs. Nothing here may fail a query: without the entry, its answer is the same.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from sparkfusion.errors import QueryCancelledError, SparkfusionError
from sparkfusion.ids import StageId
from sparkfusion.observe.events import Event, StageFinished, StageStarted, TaskFinished
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.coordinated_job import CLOSED_BY_CONSUMER
from sparkfusion.runner.spark.executor_memory import Conf
from sparkfusion.runner.spark.job_names import one_line
from sparkfusion.runner.spark.sql_events import (
    SparkEvent,
    StageMetricIds,
    end_event,
    explain_stages,
    metrics_event,
    number_metrics,
    start_event,
)

_log = logging.getLogger("sparkfusion")


class SqlTab:
    """Posts events to Spark for the queries of one session. Any thread may call any method; none of them raises."""

    def __init__(self, session: SparkSession, conf: Conf) -> None:
        self._session: Any = session
        self._works = is_shown(conf)
        self._lock = threading.Lock()
        self._java: _Java | None = None

    def prepare(self) -> None:
        """Look up Spark's objects before the first query needs them: the JVM loads its SQL classes, which can take a
        second."""
        self.use(lambda java: java.warm_up())

    @property
    def works(self) -> bool:
        """Whether somebody may see the entries, and Spark takes them. Not after the user has stopped Spark."""
        return self._works and self._session.sparkContext._jsc is not None

    def use(self, work: Callable[[_Java], None]) -> None:
        """Call the function with the objects of Spark that make events, if entries are made. What goes wrong is logged,
        and then no more is posted."""
        if not self.works:
            return
        try:
            with self._lock:
                if self._java is None:
                    self._java = _Java(self._session)
            work(self._java)
        except Exception:
            if self.works:
                _log.debug("queries are not shown in Spark's SQL tab", exc_info=True)
            self._works = False


class SqlEntry:
    """The entry of one query. `job` is the query with its events; the runner runs that one.

    The entry begins with the first stage, so there is none for a query that cannot start. The coordinator's thread
    tells of stages and of the end; any thread tells of tasks.
    """

    def __init__(self, tab: SqlTab, job: QueryJob) -> None:
        self._tab = tab
        self._query = job
        self._begun = False
        self._execution: int | None = None
        self._metrics: dict[StageId, StageMetricIds] = {}
        self._lock = threading.Lock()
        self._finished: defaultdict[StageId, list[TaskFinished]] = defaultdict(list)
        self.job = replace(job, emit=self._hear, ended=self._end) if tab.works else job

    @property
    def execution(self) -> int | None:
        """Spark's number of the entry; None if there is none."""
        return self._execution

    def _hear(self, event: Event) -> None:
        self._query.emit(event)
        if isinstance(event, TaskFinished):
            with self._lock:
                self._finished[event.key.stage].append(event)
        elif isinstance(event, StageStarted) and not self._begun:
            self._begun = True
            self._tab.use(self._begin)
        elif isinstance(event, StageFinished):
            self._post_metrics(event.stage, event.rows, event.bytes)

    def _begin(self, java: _Java) -> None:
        job = self._query
        self._metrics = number_metrics(job.graph, java.new_metric_id)
        execution = java.new_execution_id()
        text = java.redact(f"sparkfusion query {job.query}: {one_line(job)}")
        plan = java.redact(explain_stages(job.graph))
        java.post(start_event(execution, job, text, plan, self._metrics, time.time()))
        self._execution = execution

    def _post_metrics(self, stage: StageId, rows: int, size: int) -> None:
        """Post what a stage did, once: Spark would add a second value to the first."""
        execution, ids = self._execution, self._metrics.pop(stage, None)
        if execution is None or ids is None:
            return
        with self._lock:
            tasks = self._finished.pop(stage, [])
        spent = int(sum(task.seconds for task in tasks) * 1000)
        values = [(ids.rows, rows), (ids.bytes, size), (ids.tasks, len(tasks)), (ids.time, spent)]
        self._tab.use(lambda java: java.post(metrics_event(execution, values)))

    def _end(self, error: SparkfusionError | None) -> None:
        self._query.ended(error)
        execution, message = self._execution, self._message(error)
        if execution is None:
            return
        for stage, tasks in list(self._finished.items()):  # of stages that were stopped
            self._post_metrics(stage, sum(task.rows for task in tasks), sum(task.bytes for task in tasks))
        self._tab.use(lambda java: java.post(end_event(execution, java.redact(message), time.time())))

    def _message(self, error: SparkfusionError | None) -> str:
        """Why it failed. A query with a LIMIT is stopped when its rows are there, which is not a failure."""
        had_enough = isinstance(error, QueryCancelledError) and error.message == CLOSED_BY_CONSUMER
        if error is None or (had_enough and self._query.graph.head.fetch is not None):
            return ""
        return str(error)


class _Java:
    """The few objects of Spark's JVM that are needed. A call costs about 0.2 ms, so they are looked up once."""

    def __init__(self, session: Any) -> None:
        spark = session.sparkContext
        jvm = spark._jvm
        self._bus = spark._jsc.sc().listenerBus()
        self._parse: Callable[[str], Any] = jvm.org.apache.spark.util.JsonProtocol.sparkEventFromJson
        self.new_metric_id: Callable[[], int] = jvm.org.apache.spark.util.AccumulatorContext.newId
        self._conf = session._jsparkSession.sessionState().conf()
        self._redact: Callable[[Any, str], str] = jvm.org.apache.spark.util.Utils.redact
        # private in Spark, but its numbers must not be given twice
        kind = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.SQLExecution$")
        self._owner = kind.getField("MODULE$").get(None)
        self._next = kind.getDeclaredMethod("nextExecutionId", spark._gateway.new_array(jvm.java.lang.Class, 0))
        self._next.setAccessible(True)
        self._nothing = spark._gateway.new_array(jvm.java.lang.Object, 0)

    def new_execution_id(self) -> int:
        return int(self._next.invoke(self._owner, self._nothing))

    def redact(self, text: str) -> str:
        """The text without what the user hides from Spark's plans, by `spark.sql.redaction.string.regex`."""
        pattern = self._conf.stringRedactionPattern() if text else None
        return self._redact(pattern, text) if pattern is not None and pattern.isDefined() else text

    def warm_up(self) -> None:
        self._parse(json.dumps(end_event(0, "", 0)))

    def post(self, event: SparkEvent) -> None:
        self._bus.post(self._parse(json.dumps(event)))


def is_shown(conf: Conf) -> bool:
    """Whether this Spark has a user interface or writes event logs. Otherwise nobody sees an entry."""
    return _is_true(conf("spark.ui.enabled"), default=True) or _is_true(conf("spark.eventLog.enabled"), default=False)


def has_own_properties() -> bool:
    """Whether properties that a thread sets are for its own Spark jobs only. The user can turn that off in PySpark."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"


def _is_true(value: str | None, *, default: bool) -> bool:
    return default if value is None else value.strip().lower() == "true"
