"""Orders, reports and errors as messages of plain values. Nothing is pickled, and every value has its field's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from sparkfusion import errors
from sparkfusion.errors import LostInputError, ProtocolError, SparkfusionError
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.feed.dispatch import FeedError
from sparkfusion.feed.rejected import Rejected, RejectedLine
from sparkfusion.ids import SourceFile, TaskKey
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.copy import CopySpec
from sparkfusion.worker.server.task_processes import ChildDirectories, ChildOrder
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import Fetched, OperatorMetrics, TaskInput, TaskOrder, TaskReport
from sparkfusion.worker.unit_files import FeedInput

_MOST_OPTION_BYTES = 1024 * 1024
_ERRORS: dict[str, type[SparkfusionError]] = {
    each.__name__: each
    for each in (
        errors.UserError,
        errors.ResourceError,
        errors.ExternalError,
        errors.UnavailableError,
        errors.InternalError,
        errors.PlanTooLargeError,
        errors.PlanTooDeepError,
        errors.StoreFullError,
        errors.WireFormatError,
        errors.QueryCancelledError,
        FeedError,
        LostInputError,
        errors.TaskCrashError,
        errors.WorkerLostError,
        ProtocolError,
    )
}
_BY_KIND: dict[str, type[SparkfusionError]] = {
    each.kind: each for each in (errors.UserError, errors.ResourceError, errors.ExternalError, errors.InternalError)
}

# ---- orders


def pack_order(order: TaskOrder) -> bytes:
    feed = order.feed
    blobs = {
        "plan": order.plan,
        "options": _pack_options(tuple(order.options.items())),
        "reader": order.reader,
        "recipe": order.recipe,
        "schema": feed.schema if feed else None,
    }
    present = {name: blob for name, blob in blobs.items() if blob is not None}
    fields = {
        "key": _key_fields(order.key),
        "inputs": [
            {"exchange": each.exchange, "group": each.group, "files": [[file.path, file.size] for file in each.files]}
            for each in order.inputs
        ],
        "outputs": order.outputs,
        "memory_limit": order.memory_limit,
        "partitions": order.partitions,
        "feed": _feed_fields(feed) if feed is not None else None,
        "here": order.here,
        "destination": order.destination,
        "writes": asdict(order.writes) if order.writes is not None else None,
        "compression": order.compression,
        "shared": list(order.shared),
        "store_memory": order.store_memory,
        "patience": order.patience,
        "first": order.first,
        "extensions": dict(order.extensions),
        "blobs": list(present),
    }
    return pack("order", fields, *present.values())


def order_of(fields: Fields, blobs: Sequence[memoryview]) -> TaskOrder:
    """An order from a message. The message does not say whether Python is trusted: the worker decides that."""
    names = fields.texts("blobs")
    if len(names) != len(blobs) or not {"plan", "options"} <= set(names):
        raise ProtocolError("the task order is malformed: number or names of its parts are wrong")
    given = {name: bytes(blob) for name, blob in zip(names, blobs, strict=True)}
    if len(given["options"]) > _MOST_OPTION_BYTES:
        raise ProtocolError(f"an order has more than {_MOST_OPTION_BYTES:,} bytes of options")
    feed = fields.maybe_part("feed")
    writes = fields.maybe_part("writes")
    destination = fields.text("destination")
    if destination not in ("store", "consumer"):
        raise ProtocolError(f"an order has no destination {destination!r}")
    return TaskOrder(
        key=_key(fields.part("key")),
        plan=given["plan"],
        inputs=tuple(
            each.read(TaskInput, files=tuple(SourceFile(*pair) for pair in each.pairs("files")))
            for each in fields.parts("inputs")
        ),
        outputs=fields.integer("outputs"),
        options=_options(given["options"]),
        destination="store" if destination == "store" else "consumer",
        writes=writes.read(CopySpec) if writes is not None else None,
        compression=fields.text("compression"),
        memory_limit=fields.integer("memory_limit"),
        partitions=fields.integer("partitions"),
        store_memory=fields.integer("store_memory"),
        feed=feed.read(FeedInput, schema=given.get("schema", b"")) if feed is not None else None,
        first=fields.integer("first"),
        reader=given.get("reader"),
        recipe=given.get("recipe"),
        here=fields.text("here"),
        shared=fields.integers("shared"),
        patience=fields.number("patience"),
        extensions=fields.mapping("extensions"),
    )


def _feed_fields(feed: FeedInput) -> dict[str, Any]:
    """All but the schema, which is sent as a blob."""
    return {name: value for name, value in asdict(feed).items() if name != "schema"}


@lru_cache(maxsize=16)
def _pack_options(options: tuple[tuple[str, str], ...]) -> bytes:
    """The options are the largest part of an order and the same in all orders of a query, so they are cached."""
    return pack("options", dict(options))


@lru_cache(maxsize=16)
def _options(data: bytes) -> Mapping[str, str]:
    _, fields, _ = unpack(data, len(data))
    return MappingProxyType(fields.texts_by_name())


def pack_child_order(order: ChildOrder) -> bytes:
    return pack("task", {"trust_python": order.trust_python, **asdict(order.directories)}, pack_order(order.order))


def child_order_of(fields: Fields, blobs: list[memoryview]) -> ChildOrder:
    _, inner, parts = unpack(blobs[0], len(blobs[0]))
    return ChildOrder(order_of(inner, parts), fields.read(ChildDirectories), fields.flag("trust_python"))


# ---- keys


def pack_key(kind: str, key: TaskKey, *blobs: bytes, **numbers: int) -> bytes:
    """A message about a task."""
    return pack(kind, {"key": _key_fields(key), **numbers}, *blobs)


def key_of(fields: Fields) -> TaskKey:
    return _key(fields.part("key"))


def _key_fields(key: TaskKey) -> dict[str, Any]:
    return {"query": key.query, "stage": key.stage, "task": key.task, "attempt": key.attempt}


def _key(fields: Fields) -> TaskKey:
    numbers = [fields.integer(name) for name in ("stage", "task", "attempt")]
    query = fields.text("query")
    if min(numbers) < 0 or not query.isalnum() or len(query) > 64:
        raise ProtocolError("a message does not name a task")
    return TaskKey(query, *numbers)


# ---- reports


def pack_report(report: TaskReport) -> bytes:
    fields = {
        "key": _key_fields(report.key),
        "files": [asdict(file) for file in report.manifest.files],
        "rows": report.rows,
        "seconds": report.seconds,
        "operators": [asdict(each) for each in report.operators],
        "earlier_attempts": report.earlier_attempts,
        "recomputed_inputs": report.recomputed_inputs,
        "units": report.units,
        "fetched": [asdict(each) for each in report.fetched],
        "rejected": asdict(report.rejected) if report.rejected is not None else None,
        "started_at": report.started_at,
        "worker": report.worker,
    }
    return pack("report", fields)


def report_of(fields: Fields) -> TaskReport:
    key = key_of(fields)
    rejected = fields.maybe_part("rejected")
    return fields.read(
        TaskReport,
        key=key,
        manifest=Manifest(key, fields.each("files", FrameFile)),
        operators=fields.each("operators", OperatorMetrics),
        fetched=fields.each("fetched", Fetched),
        rejected=rejected.read(Rejected, first=rejected.each("first", RejectedLine)) if rejected is not None else None,
    )


# ---- errors


def pack_error(error: SparkfusionError) -> bytes:
    fields = {
        "name": type(error).__name__,
        "of": error.kind,
        "message": error.message,
        "hint": error.hint,
        "where": _key_fields(error.where) if error.where is not None else None,
        "lost": [list(each) for each in error.lost] if isinstance(error, LostInputError) else [],
    }
    return pack("error", fields)


def error_of(fields: Fields) -> SparkfusionError:
    """The error of a message. A class that is not known here becomes the plain error of its kind."""
    where = fields.maybe_part("where")
    known = _ERRORS.get(fields.text("name")) or _BY_KIND.get(fields.text("of"), errors.InternalError)
    found = known(
        fields.text("message"), where=_key(where) if where is not None else None, hint=fields.maybe_text("hint")
    )
    if isinstance(found, LostInputError):
        found.lost = tuple(_lost_task_of(each) for each in fields.lists("lost"))
    return found


def _lost_task_of(numbers: Sequence[int]) -> tuple[int, int, int]:
    if len(numbers) != 3:
        raise ProtocolError("a message does not name a task")
    stage, task, attempt = numbers
    return stage, task, attempt


# ---- what a worker says of itself


def pack_info(info: WorkerInfo) -> bytes:
    return pack("info", asdict(info))


def info_of(fields: Fields) -> WorkerInfo:
    return fields.read(WorkerInfo)


def pack_status(status: WorkerStatus) -> bytes:
    return pack("status", asdict(status))


def status_of(fields: Fields) -> WorkerStatus:
    return fields.read(WorkerStatus)
