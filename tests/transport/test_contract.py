"""The worker contract, over every transport."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkfusion.errors import ExternalError, LostInputError, QueryCancelledError, SparkfusionError, UserError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.sink import ConsumerSink
from sparkfusion.feed.ledger import Grant
from sparkfusion.feed.unit_codec import encode_unit
from sparkfusion.feed.units import FileUnit
from sparkfusion.ids import SourceFile, TaskKey
from sparkfusion.session.dataframe import look_inside
from sparkfusion.transport.base import Access, WorkerChannel
from sparkfusion.transport.flight.flight_worker import Listen, RunningWorker
from sparkfusion.transport.process.children import Children
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server import service as service_module
from sparkfusion.worker.server.frame_names import frame_address
from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.task import TaskOrder
from tests import leaks
from tests.behaviour.probes import PATIENCE, PROMPT, until
from tests.in_process_workers import start_worker, stop_worker
from tests.transport.plans import order_of_plan, order_of_sql, reading
from tests.worker_processes import IDLE, TOKEN

SECRET = "s" * 24
LEASE = 2.0
NO_ROWS = TaskEnds(rows=lambda batch: None)
StartTwo = Callable[[WorkerOptions], Any]


@contextmanager
def in_process(options: WorkerOptions) -> Iterator[str]:
    address, _ = start_worker(options)
    yield address
    stop_worker(address)


@contextmanager
def flight(options: WorkerOptions) -> Iterator[str]:
    worker = RunningWorker(Listen("127.0.0.1", 0, TOKEN, lease_seconds=LEASE), options)
    yield worker.address
    assert worker.close()


TRANSPORTS = {"in process": in_process, "in children": in_process, "flight": flight}


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    """Processes for tasks, warm after the first one."""
    with leaks.known_processes(leaks.TASK_PROCESS):
        children = Children(2)
        children._starter.submit(int).result()  # its thread is there from now on
        yield children
        children.close()


@pytest.fixture(params=TRANSPORTS)
def start(request: pytest.FixtureRequest, children: Children) -> Callable[[WorkerOptions], Any]:
    transport = TRANSPORTS[request.param]
    if request.param != "in children":
        return transport
    return lambda options: transport(replace(options, children=children))


@pytest.fixture
def channel(start: StartTwo, tmp_path: Path) -> Iterator[WorkerChannel]:
    options = WorkerOptions(2, str(tmp_path), Guard(trust_python=True))
    with start(options) as address:
        channel = connect(address, Access(TOKEN))
        yield channel
        assert channel.status() == IDLE
        channel.close()


@pytest.fixture
def held(channel: WorkerChannel) -> Iterator[WorkerChannel]:
    lease = channel.hold("q1", SECRET, 2.0, lambda error: None)
    yield channel
    lease.close()


def fail(error: SparkfusionError) -> None:
    pytest.fail(f"lost: {error}")


def test_a_worker_says_who_it_is(channel: WorkerChannel) -> None:
    info = channel.info()
    assert (info.slots, info.trusts_python) == (2, True)
    assert info.version
    assert channel.address.startswith(("in-process://", "flight://"))


def test_a_task_leaves_frames_that_others_read(held: WorkerChannel) -> None:
    key = TaskKey("q1", 1, 0)
    table = pa.table({"x": [3, 1, 2]})
    order = order_of_sql("select x from t order by x", key, held.address, tables={"t": table})
    report = held.run(order, NO_ROWS, CancelToken())
    assert (report.key, report.rows) == (key, 3)
    assert report.operators
    (file,) = report.manifest.files
    assert file.path == "1-0-0/0-000000.arrow"
    pieces = list(held.read("q1", SECRET, [file.path], CancelToken(), 5.0))
    data = b"".join(piece.to_pybytes() for _, piece in pieces)
    assert len(data) == file.bytes
    assert pa.ipc.open_file(data).read_all().to_pylist() == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert held.status().files == 1


def test_frames_of_another_worker_are_fetched_by_the_task(held: WorkerChannel, start: StartTwo, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with start(WorkerOptions(1, str(tmp_path / "other"))) as address:
        other = connect(address, Access(TOKEN))
        lease = other.hold("q1", SECRET, 2.0, fail)
        make = order_of_sql("select x from t", TaskKey("q1", 1, 0), address, tables={"t": pa.table({"x": [1, 2]})})
        (file,) = other.run(make, NO_ROWS, CancelToken()).manifest.files
        source = SourceFile(frame_address(address, file.path), file.bytes)
        report = held.run(reading(TaskKey("q1", 2, 0), held.address, [source]), NO_ROWS, CancelToken())
        assert report.rows == 2
        (fetched,) = report.fetched
        assert (fetched.exchange, fetched.bytes) == (1, file.bytes)
        assert fetched.messages >= 1
        lease.close()
        again = reading(TaskKey("q1", 2, 1), held.address, [source])
        with pytest.raises(LostInputError) as lost:
            held.run(again, NO_ROWS, CancelToken())
        assert lost.value.lost == ((1, 0, 0),)
        other.close()


def test_a_reader_of_frames_may_take_its_time(held: WorkerChannel) -> None:
    """Longer than it would wait for the worker."""
    table = pa.table({"x": np.arange(1_000_000)})  # quickly made: nobody keeps the lease alive meanwhile
    order = order_of_sql("select x from t", TaskKey("q1", 1, 0), held.address, tables={"t": table})
    (file,) = held.run(order, NO_ROWS, CancelToken()).manifest.files
    size = 0
    for _, piece in held.read("q1", SECRET, [file.path], CancelToken(), 0.5):
        size += len(piece)
        time.sleep(0.8)  # more than the patience
    assert size == file.bytes


def test_a_secret_opens_one_query_only(held: WorkerChannel) -> None:
    order = order_of_sql("select x from t", TaskKey("q1", 1, 0), held.address, tables={"t": pa.table({"x": [1]})})
    (file,) = held.run(order, NO_ROWS, CancelToken()).manifest.files
    lease = held.hold("q2", "t" * 24, 2.0, fail)
    with pytest.raises((LostInputError, UserError)):
        list(held.read("q1", "t" * 24, [file.path], CancelToken(), 5.0))
    lease.close()


@pytest.mark.parametrize("name", ["1-0-0/0-000000.arrow", "../../etc/passwd", "", "/etc/passwd"])
def test_only_frames_that_were_reported_can_be_read(held: WorkerChannel, name: str) -> None:
    with pytest.raises(LostInputError):
        list(held.read("q1", SECRET, [name], CancelToken(), 5.0))


def test_rows_go_up_while_the_task_runs(held: WorkerChannel) -> None:
    table = pa.table({"x": list(range(100)), "s": ["ü"] * 100})
    order = order_of_sql("select x, s from t", TaskKey("q1", 1, 0), held.address, tables={"t": table})
    seen: list[pa.RecordBatch] = []
    report = held.run(replace(order, destination="consumer"), TaskEnds(seen.append), CancelToken())
    assert pa.Table.from_batches(seen).to_pylist() == table.to_pylist()
    assert report.manifest.files == ()


@pytest.mark.parametrize("start", ["in process", "flight"], indirect=True)
def test_a_reader_that_stops_stops_the_worker(held: WorkerChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over Flight two batches of 7 MB fit into the 16 MiB that gRPC reads ahead, and some are on their way."""
    made: list[int] = []
    write = ConsumerSink.write

    def counting(sink: ConsumerSink, partition: int, batch: pa.RecordBatch) -> None:
        made.append(batch.nbytes)
        write(sink, partition, batch)

    monkeypatch.setattr(ConsumerSink, "write", counting)
    table = pa.table({"x": list(range(7000)), "s": ["x" * 1000] * 7000})
    order = order_of_sql("select a.* from t a, t b", TaskKey("q1", 1, 0), held.address, tables={"t": table})
    stopped, cancel = threading.Event(), CancelToken()

    def run() -> None:
        with pytest.raises(SparkfusionError):
            held.run(replace(order, destination="consumer"), TaskEnds(lambda batch: waiting(stopped)), cancel)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: bool(made) and still(made))
        assert sum(made) < 60_000_000
    finally:
        cancel.cancel()
        stopped.set()
        thread.join(PATIENCE)
    until(lambda: held.status().running == 0)


def waiting(event: threading.Event) -> None:
    event.wait()


def still(made: list[int]) -> bool:
    before = len(made)
    time.sleep(0.5)
    return len(made) == before


def test_dictionaries_survive_the_way_up(held: WorkerChannel) -> None:
    column = pa.array(["a", "b", "a", None]).dictionary_encode()
    order = order_of_sql("select d from t", TaskKey("q1", 1, 0), held.address, tables={"t": pa.table({"d": column})})
    seen: list[pa.RecordBatch] = []
    held.run(replace(order, destination="consumer"), TaskEnds(seen.append), CancelToken())
    assert pa.Table.from_batches(seen).column("d").to_pylist() == ["a", "b", "a", None]


def test_a_reader_that_closes_ends_the_task(held: WorkerChannel) -> None:
    def closed(batch: pa.RecordBatch) -> None:
        raise ChannelClosedError

    order = order_of_sql("select x from t", TaskKey("q1", 1, 0), held.address, tables={"t": pa.table({"x": [1]})})
    with pytest.raises((ChannelClosedError, QueryCancelledError)):
        held.run(replace(order, destination="consumer"), TaskEnds(closed), CancelToken())
    until(lambda: held.status().running == 0)


def test_an_error_keeps_its_kind_and_words(held: WorkerChannel) -> None:
    order = order_of_sql(
        "select 1 / (x - x) from t", TaskKey("q1", 3, 4), held.address, tables={"t": pa.table({"x": [1]})}
    )
    with pytest.raises(UserError, match="Divide by zero") as raised:
        held.run(order, NO_ROWS, CancelToken())
    assert raised.value.where == TaskKey("q1", 3, 4)
    assert held.status().files == 0


def test_a_task_can_be_cancelled(held: WorkerChannel) -> None:
    spinning = endless(TaskKey("q1", 1, 0), held.address)
    cancel = CancelToken()
    threading.Timer(0.3, cancel.cancel).start()
    began = time.monotonic()
    with pytest.raises(QueryCancelledError):
        held.run(spinning, SLOWLY, cancel)
    assert time.monotonic() - began < PROMPT
    until(lambda: held.status().running == 0)


def test_closing_the_lease_ends_its_tasks(channel: WorkerChannel) -> None:
    lease = channel.hold("q1", SECRET, 2.0, fail)
    errors: list[SparkfusionError] = []

    def run() -> None:
        try:
            channel.run(endless(TaskKey("q1", 1, 0), channel.address), SLOWLY, CancelToken())
        except SparkfusionError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: channel.status().running == 1)
    lease.close()
    thread.join(PATIENCE)
    assert [type(error) for error in errors] == [QueryCancelledError]


def test_a_worker_says_how_busy_others_keep_it(channel: WorkerChannel) -> None:
    leases = {query: channel.hold(query, query[1] * 24, 2.0, fail) for query in ("q1", "q2")}
    cancel = CancelToken()

    def run() -> None:
        with pytest.raises(QueryCancelledError):
            channel.run(endless(TaskKey("q1", 1, 0), channel.address), SLOWLY, cancel)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: leases["q2"].others() == 1)
    assert leases["q1"].others() == 0
    cancel.cancel()
    thread.join(PATIENCE)
    until(lambda: leases["q2"].others() == 0)
    for lease in leases.values():
        lease.close()


def test_a_worker_that_closes_sends_its_tasks_elsewhere(start: StartTwo, tmp_path: Path) -> None:
    errors: list[SparkfusionError] = []
    with start(WorkerOptions(1, str(tmp_path))) as address:
        channel = connect(address, Access(TOKEN))
        lease = channel.hold("q1", SECRET, 5.0, lambda error: None)

        def run() -> None:
            try:
                channel.run(endless(TaskKey("q1", 1, 0), address), SLOWLY, CancelToken())
            except SparkfusionError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: channel.status().running == 1)
    thread.join(PATIENCE)
    lease.close()
    channel.close()
    assert [type(error) for error in errors] == [ExternalError]
    assert errors[0].retryable


def test_a_query_that_is_not_held_runs_nothing(channel: WorkerChannel) -> None:
    with pytest.raises(ExternalError, match="this worker does not know query q9"):
        channel.run(order_of_sql("select 1", TaskKey("q9", 1, 0), channel.address), NO_ROWS, CancelToken())


def test_a_query_is_held_once(held: WorkerChannel) -> None:
    with pytest.raises(ExternalError, match="already on this worker"):
        held.hold("q1", SECRET, 2.0, fail)


def test_closing_a_lease_lets_go_of_the_query(channel: WorkerChannel) -> None:
    lease = channel.hold("q1", SECRET, 2.0, fail)
    assert channel.status().queries == 1
    lease.close()
    lease.close()
    assert channel.status().queries == 0


def test_a_worker_that_closes_tells_who_holds_a_query(start: StartTwo, tmp_path: Path) -> None:
    lost: list[SparkfusionError] = []
    with start(WorkerOptions(1, str(tmp_path))) as address:
        channel = connect(address, Access(TOKEN))
        lease = channel.hold("q1", SECRET, 5.0, lost.append)
    until(lambda: bool(lost))
    lease.close()
    channel.close()
    assert [type(error) for error in lost] == [ExternalError]


def test_a_lease_lasts_as_long_as_it_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over Flight: a worker in this process needs no heartbeat."""
    ear = Ear()
    monkeypatch.setattr(service_module, "AwakeClock", lambda interval: ear)
    renew = WorkerService.renew
    monkeypatch.setattr(WorkerService, "renew", lambda service, query: ear.hear(lambda: renew(service, query)))
    lost: list[SparkfusionError] = []
    with flight(WorkerOptions(1, str(tmp_path))) as address:
        channel = connect(address, Access(TOKEN))
        lease = channel.hold("q1", SECRET, 2.0, lost.append)
        for _ in range(3):
            ear.set_forward(LEASE * 0.9)
            ear.wait_for_renewals()
        assert (channel.status().queries, lost) == (1, [])
        ear.deaf = True
        ear.set_forward(LEASE * 1.1)
        until(lambda: channel.status() == IDLE)
        ear.deaf = False
        until(lambda: bool(lost))
        lease.close()
        channel.close()


class Ear:
    """A worker's ear, which can be shut, and its clock, which goes forward when it is set."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heard = threading.Condition()
        self._renewals = 0
        self.deaf = False

    def tick(self) -> float:
        return self.now

    def set_forward(self, seconds: float) -> None:
        self.now += seconds

    def hear(self, renew: Callable[[], None]) -> None:
        if self.deaf:
            return
        renew()
        with self._heard:
            self._renewals += 1
            self._heard.notify_all()

    def wait_for_renewals(self) -> None:
        """For two: the first may have looked at the clock before it was set."""
        with self._heard:
            wanted = self._renewals + 2
            assert self._heard.wait_for(lambda: self._renewals >= wanted, 60)


def test_discarded_frames_are_gone(held: WorkerChannel) -> None:
    key = TaskKey("q1", 1, 0)
    order = order_of_sql("select x from t", key, held.address, tables={"t": pa.table({"x": [1]})})
    held.run(order, NO_ROWS, CancelToken())
    held.discard(key)
    held.discard(key)
    assert held.status().files == 0


class Units:
    """Grants of a feed: the same for every offset, however often it is asked for."""

    def __init__(self, *grants: bytes) -> None:
        self.grants = grants
        self.asked: list[int] = []

    def take(self, offset: int) -> bytes | None:
        self.asked.append(offset)
        return self.grants[offset] if offset < len(self.grants) else None

    def report_failure(self, offset: int) -> None:
        return

    def enough(self) -> None:
        return


def test_units_come_down_on_demand(held: WorkerChannel, tmp_path: Path) -> None:
    plan, feed = fed_plan(tmp_path)
    grants = [Grant.of([encode_unit(FileUnit(str(tmp_path / f"{i}.parquet")))]).data for i in range(3)]
    units = Units(*grants)
    order = order_of_plan(plan, TaskKey("q1", 1, 0), feed=feed, here=held.address)
    report = held.run(order, TaskEnds(NO_ROWS.rows, units), CancelToken())
    assert (report.rows, report.units) == (6, 3)
    assert units.asked == [0, 1, 2, 3]


def test_what_a_worker_reaches(channel: WorkerChannel, tmp_path: Path) -> None:
    (tmp_path / "probe").write_text("content")
    assert channel.reaches(str(tmp_path), "probe", "content")
    assert not channel.reaches(str(tmp_path), "probe", "another")
    assert not channel.reaches(str(tmp_path), "nothing", "content")
    assert not channel.reaches(str(tmp_path), "../probe", "content")


def endless(key: TaskKey, here: str) -> TaskOrder:
    """A task with more rows than anybody will read; it ends where a frame does."""
    order = order_of_sql(
        "select a.x from t a, t b, t c, t d", key, here, tables={"t": pa.table({"x": list(range(1000))})}
    )
    return replace(order, destination="consumer")


SLOWLY = TaskEnds(rows=lambda batch: time.sleep(0.01))


def fed_plan(directory: Path) -> tuple[bytes, Any]:
    """The plan of a task over file units, as a session makes it."""
    import pyarrow.parquet as pq

    import sparkfusion
    from sparkfusion.plan.isolate import isolate
    from sparkfusion.runner.job_feeds import feed_input

    for index in range(3):
        pq.write_table(pa.table({"x": [index, index]}), directory / f"{index}.parquet")

    class Files(sparkfusion.WorkUnitFeedProvider):
        def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Any:
            return iter(())

    with sparkfusion.connect() as session:
        session.register_feed("f", Files(), schema=pa.schema([("x", pa.int64())]), format="parquet")
        engine, query = look_inside(session.sql("select x from f"))
        planned = engine.plan(query)
        graph = planned.distribution.graph
        assert graph is not None
        isolated = isolate(graph.stages[0], (0,))
        (declared,) = planned.feeds
        return isolated.plan, feed_input(declared)
