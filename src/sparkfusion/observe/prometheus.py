"""Metrics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sparkfusion.worker.server.task_tally import WorkerMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class MetricFamily:
    """A metric with its samples: a value for each set of labels."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


def worker_families(metrics: WorkerMetrics, now: float) -> list[MetricFamily]:
    """The metrics of a worker. docs/observability.md lists their names."""
    info, status, tasks = metrics.info, metrics.status, metrics.tasks
    versions = {"version": info.version, "datafusion": info.datafusion, "python": info.python}
    ended = {"finished": tasks.finished, "failed": tasks.failed, "cancelled": tasks.cancelled}
    waiting = max(0, status.running - tasks.running)
    return [
        MetricFamily("sparkfusion_worker_info", "gauge", "Versions of this worker.", ((versions, 1),)),
        _one("slots", "gauge", "Tasks that may run at the same time.", info.slots),
        _one("tasks_running", "gauge", "Tasks that run now.", tasks.running),
        _one("tasks_waiting", "gauge", "Tasks that wait for a slot now.", waiting),
        MetricFamily(
            "sparkfusion_worker_tasks_total",
            "counter",
            "Attempts at tasks that have ended.",
            tuple(({"outcome": outcome}, count) for outcome, count in ended.items()),
        ),
        _one("task_seconds_total", "counter", "Seconds that finished tasks ran.", tasks.seconds),
        _one("rows_total", "counter", "Rows that finished tasks wrote.", tasks.rows),
        _one("bytes_total", "counter", "Bytes of frames that finished tasks wrote.", tasks.bytes),
        _one("fetched_bytes_total", "counter", "Bytes that finished tasks fetched from workers.", tasks.fetched_bytes),
        _one("queries", "gauge", "Queries that this worker holds now.", status.queries),
        _one("stored_files", "gauge", "Files of frames and spills that this worker holds now.", status.files),
        _one("stored_bytes", "gauge", "Bytes of these files.", status.bytes),
        _one("memory_bytes", "gauge", "Resident memory of the worker and its task processes.", metrics.memory_bytes),
        _one("memory_limit_bytes", "gauge", "Memory of the machine, or of its container.", metrics.memory_limit),
        _one("start_time_seconds", "gauge", "When the worker started, in seconds since 1970.", metrics.started_at),
        _one("uptime_seconds", "gauge", "How long the worker has been running.", max(0.0, now - metrics.started_at)),
    ]


def render_text(families: Iterable[MetricFamily]) -> str:
    """The text that a scraper reads.

    >>> print(render_text([MetricFamily("a_total", "counter", "How many.", (({"b": "x"}, 2),))]), end="")
    # HELP a_total How many.
    # TYPE a_total counter
    a_total{b="x"} 2
    """
    lines: list[str] = []
    for family in families:
        explained = family.help.replace("\\", r"\\").replace("\n", r"\n")
        lines += [f"# HELP {family.name} {explained}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{family.name}{_labels(labels)} {_number(value)}" for labels, value in family.samples]
    return "".join(f"{line}\n" for line in lines)


def _one(name: str, kind: Literal["counter", "gauge"], explained: str, value: float) -> MetricFamily:
    return MetricFamily(f"sparkfusion_worker_{name}", kind, explained, (({}, value),))


def _labels(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    """
    >>> _number(3), _number(0.5), _number(float("inf")), _number(float("nan"))
    ('3', '0.5', '+Inf', 'NaN')
    """
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
