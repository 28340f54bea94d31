"""Messages: what goes in comes out, and nothing else gets through."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkfusion import errors
from sparkfusion.errors import LostInputError, ProtocolError, SparkfusionError
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.feed.rejected import Rejected, RejectedLine
from sparkfusion.ids import SourceFile, TaskKey
from sparkfusion.transport.codec import (
    error_of,
    info_of,
    order_of,
    pack_error,
    pack_info,
    pack_order,
    pack_report,
    pack_status,
    report_of,
    status_of,
)
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.copy import CopySpec
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus, this_version
from sparkfusion.worker.task import Fetched, OperatorMetrics, TaskInput, TaskOrder, TaskReport
from sparkfusion.worker.unit_files import FeedInput
from tests.transport.plans import order_of_plan

LIMIT = 1 << 20
KEY = TaskKey("abc123", 2, 3, 4)
FEED = FeedInput(
    7, "täble", files=True, schema=b"\0\1", columns=("a", "b"), partition_columns=("p",), headers={"h": "1"}
)
ORDER = TaskOrder(
    KEY,
    b"\0plan\xff",
    (TaskInput(1, 0, (SourceFile("flight://a:1/1-0-0/x.arrow", 10),)), TaskInput(2, 1, ())),
    outputs=5,
    options={"datafusion.execution.batch_size": "7", "ü": "\n"},
    memory_limit=123,
    feed=FEED,
    here="flight://a:1",
)
ORDERS = {
    "plain": replace(ORDER, feed=None, inputs=()),
    "full": replace(
        ORDER,
        destination="consumer",
        writes=CopySpec("/s", "/t", "STORED AS PARQUET", {"a": "b"}),
        compression="lz4",
        shared=(1, 2),
        store_memory=5,
        patience=2.5,
        reader=b"reader",
        recipe=b"recipe",
        extensions={"x": "y"},
    ),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_orders_come_out_as_they_went_in(order: TaskOrder) -> None:
    kind, fields, blobs = unpack(pack_order(order), LIMIT)
    assert kind == "order"
    assert order_of(fields, blobs) == order


def test_reports_come_out_as_they_went_in() -> None:
    report = TaskReport(
        KEY,
        Manifest(KEY, (FrameFile("1-0-0/x", 1, 2, 3),)),
        rows=9,
        seconds=0.5,
        operators=(OperatorMetrics("Scan", 0, None, None, 0), OperatorMetrics("Sort", 1, 5, 0.25, 7)),
        units=4,
        fetched=(Fetched(1, 2, 3, 0.5),),
        rejected=Rejected("t", 7, (RejectedLine("/a.csv", 3, "x,1", "no number"),)),
    )
    found = report_of(unpack(pack_report(report), LIMIT)[1])
    assert found == report
    assert (found.operators, found.fetched) == (report.operators, report.fetched)


@pytest.mark.parametrize(
    "error",
    [
        errors.UserError("no", where=KEY, hint="do"),
        errors.StoreFullError("full"),
        errors.QueryCancelledError("over", where=KEY),
        LostInputError("gone", lost=[(1, 2, 3)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_class_words_and_place(error: SparkfusionError) -> None:
    found = error_of(unpack(pack_error(error), LIMIT)[1])
    assert type(found) is type(error)
    assert (found.message, found.where, found.hint) == (error.message, error.where, error.hint)
    assert getattr(found, "lost", None) == getattr(error, "lost", None)


def test_an_unknown_class_of_error_keeps_its_kind() -> None:
    class OddError(errors.ExternalError):
        pass

    found = error_of(unpack(pack_error(OddError("odd")), LIMIT)[1])
    assert type(found) is errors.ExternalError
    assert found.retryable


def test_what_workers_say_of_themselves() -> None:
    info = WorkerInfo("1", "55", "3.11", 4, "host", trusts_python=False)
    assert info_of(unpack(pack_info(info), LIMIT)[1]) == info
    assert info_of(unpack(pack_info(this_version()), LIMIT)[1]) == this_version()
    status = WorkerStatus(1, 2, 3, 4)
    assert status_of(unpack(pack_status(status), LIMIT)[1]) == status


def test_workers_of_other_versions_are_understood() -> None:
    """In both directions, so that a message names the versions and not a field: what was told first stays."""
    first = {"version": "1", "datafusion": "55", "python": "3.11", "slots": 4, "host": "h", "trusts_python": False}
    assert info_of(Fields(first)) == WorkerInfo("1", "55", "3.11", 4, "h", trusts_python=False)
    assert unpack(pack_info(this_version()), LIMIT)[1].text("version") == this_version().version
    assert first.keys() < asdict(this_version()).keys()


def test_a_message_over_the_limit_is_refused() -> None:
    with pytest.raises(ProtocolError, match="over the limit"):
        unpack(pack("x", {}, b"0" * 100), 50)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack(data, LIMIT)


def test_every_truncation_is_refused() -> None:
    data = pack_order(ORDERS["full"])
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            unpack(data[:length], LIMIT)


def test_changed_fields_are_refused_or_make_plain_data() -> None:
    """Whatever is changed in an order's head, either it is refused or plain values come out."""
    chance = random.Random(3)
    data = pack_order(ORDERS["full"])
    (length,) = struct.unpack_from("<I", data)
    head, rest = json.loads(data[4 : 4 + length]), data[4 + length :]
    refused = 0
    for name in head["fields"]:
        odd: object
        for odd in (None, [], {}, "", -1, 1.5, True, [[]], {"a": 1}, [1], chance.random()):
            changed = {**head, "fields": {**head["fields"], name: odd}}
            encoded = json.dumps(changed).encode()
            message = struct.pack("<I", len(encoded)) + encoded + rest
            try:
                order_of(*unpack(message, LIMIT)[1:])
            except ProtocolError:
                refused += 1
    assert refused > 80


@pytest.mark.parametrize("query", ["", "a/b", "..", "x" * 65, "a b"])
def test_names_of_queries_are_no_paths(query: str) -> None:
    order = replace(ORDER, key=TaskKey(query, 1, 0))
    _, fields, blobs = unpack(pack_order(order), LIMIT)
    with pytest.raises(ProtocolError):
        order_of(fields, blobs)


def test_options_are_limited() -> None:
    """They are kept after they were read."""
    order = order_of_plan(b"plan", TaskKey("q1", 1, 0), options={"datafusion.x": "y" * 2_000_000})
    _, fields, blobs = unpack(pack_order(order), 10_000_000)
    with pytest.raises(ProtocolError, match="bytes of options"):
        order_of(fields, blobs)


def test_deep_nesting_is_refused() -> None:
    encoded = b'{"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ProtocolError):
        unpack(struct.pack("<I", len(encoded)) + encoded, LIMIT)
