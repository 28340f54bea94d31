"""What a worker refuses."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import sparkfusion
from sparkfusion.errors import PlanTooLargeError, ProtocolError, UserError
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.feed.ledger import Grant
from sparkfusion.feed.unit_codec import encode_unit
from sparkfusion.feed.units import FileUnit
from sparkfusion.ids import TaskKey
from sparkfusion.plan.wire import decode, encode, file_scan_conf, walk
from sparkfusion.worker.copy import CopySpec
from sparkfusion.worker.server.guard import Guard, Limits
from sparkfusion.worker.task import TaskInput, TaskOrder
from sparkfusion.worker.task_context import SPARK_FUNCTIONS_OPTION, Surroundings, task_context
from tests.transport.conftest import StartWorker
from tests.transport.plans import order_of_plan, order_of_sql
from tests.worker_processes import url_of

KEY = TaskKey("q", 1, 0)
ONE = order_of_sql("select 1", KEY, "here")


def scan_of(path: Path) -> TaskOrder:
    context = SessionContext()
    context.register_parquet("t", str(path))
    return order_of_plan(context.sql("select * from t").execution_plan().to_bytes(context), KEY)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("allowed", "secret"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / name / "t.parquet")
    (tmp_path / "allowed" / "link.parquet").symlink_to(tmp_path / "secret" / "t.parquet")
    return tmp_path


def test_scans_below_a_root_are_allowed(data: Path) -> None:
    Guard(roots=(data / "allowed",)).check(scan_of(data / "allowed" / "t.parquet"))
    Guard().check(scan_of(data / "secret" / "t.parquet"))


@pytest.mark.parametrize("path", ["secret/t.parquet", "allowed/link.parquet"])
def test_scans_elsewhere_are_refused(data: Path, path: str) -> None:
    with pytest.raises(UserError, match="may not read"):
        Guard(roots=(data / "allowed",)).check(scan_of(data / path))


def test_percent_signs_hide_nothing(data: Path) -> None:
    guard = Guard(roots=(data / "allowed",))
    assert not guard.allows(f"{data}/allowed/%2e%2e/secret/t.parquet")
    assert not guard.allows(f"{data}/allowed/../secret/t.parquet")
    assert not guard.allows(f"{data}/allowed-not")
    assert guard.allows(f"{data}/allowed/deep/er")


@pytest.mark.parametrize("url", ["FILE:///", " file:///", "", "fi\nle:///", "file://host/", "file:", "s3://a b/"])
def test_a_root_holds_however_the_store_is_spelled(data: Path, url: str) -> None:
    order = scan_of(data / "secret" / "t.parquet")
    root = decode(order.plan)
    for conf in filter(None, map(file_scan_conf, walk(root))):
        conf.object_store_url = url
    with pytest.raises(ProtocolError, match="no object store"):
        Guard(roots=(data / "allowed",)).check(replace(order, plan=encode(root)))


@pytest.mark.parametrize("placeholder", ["sparkfusion-exchange/1/0", "sparkfusion-feed/0/0/t"])
def test_a_file_beside_a_placeholder_is_a_file(data: Path, placeholder: str) -> None:
    order = scan_of(data / "secret" / "t.parquet")
    root = decode(order.plan)
    for conf in filter(None, map(file_scan_conf, walk(root))):
        conf.file_groups.add().files.add(path=placeholder, size=1)
    inputs = (TaskInput(1, 0, ()),)
    with pytest.raises(UserError, match=r"may not read .*secret"):
        Guard(roots=(data / "allowed",)).check(replace(order, plan=encode(root), inputs=inputs))


@pytest.mark.parametrize("path", ["sparkfusion-exchange/1/0", "sparkfusion-exchange/1/0/../../../etc/passwd"])
def test_a_placeholder_without_an_input_is_a_path(data: Path, path: str) -> None:
    order = scan_of(data / "allowed" / "t.parquet")
    root = decode(order.plan)
    for conf in filter(None, map(file_scan_conf, walk(root))):
        conf.file_groups[0].files[0].path = path
    with pytest.raises(UserError, match="may not read"):
        Guard(roots=(data / "allowed",)).check(replace(order, plan=encode(root)))


@pytest.mark.parametrize("roots", [True, False], ids=["roots", "no roots"])
@pytest.mark.parametrize("staging", ["secret", "allowed", "allowed/x", "allowed/sparkfusion-1-q-x/frames", "", ".."])
def test_writing_elsewhere_is_refused(data: Path, staging: str, roots: bool) -> None:
    """Only a directory of a query, with its lock, is written to: what is above it may be removed."""
    path = str(data / staging) if staging.strip(".") else staging
    order = replace(ONE, writes=CopySpec(path, "t", "", {}))
    with pytest.raises(UserError, match="may not write"):
        Guard(roots=(data / "allowed",) if roots else ()).check(order)


def test_a_directory_of_a_query_is_written_to(data: Path) -> None:
    home = SharedHome("q", data / "allowed")
    order = replace(ONE, writes=CopySpec(str(home.path), "t", "", {}))
    Guard(roots=(data / "allowed",)).check(order)
    home.close()
    with pytest.raises(UserError, match="not the output directory of a query"):
        Guard(roots=(data / "allowed",)).check(order)


@pytest.mark.parametrize(
    ("order", "words"), [(replace(ONE, reader=b"x"), "reader"), (replace(ONE, recipe=b"x"), "stores")]
)
def test_functions_need_trust(order: TaskOrder, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        Guard().check(order)
    assert "--trust-python" in str(refused.value)
    Guard(trust_python=True).check(order)


def test_sizes_are_limited() -> None:
    with pytest.raises(PlanTooLargeError):
        Guard(Limits(plan_bytes=3)).check(ONE)
    with pytest.raises(ProtocolError, match="output partitions"):
        Guard().check(replace(ONE, outputs=10**9))
    with pytest.raises(ProtocolError, match="output partitions"):
        Guard().check(replace(ONE, outputs=0))


def test_a_plan_that_writes_is_refused(data: Path) -> None:
    context = SessionContext()
    context.register_parquet("t", str(data / "allowed" / "t.parquet"))
    plan = context.sql(f"copy t to '{data}/out.parquet'").execution_plan().to_bytes(context)
    with pytest.raises(ProtocolError, match="parquet_sink"):
        Guard().check(order_of_plan(plan, KEY))


def test_bytes_that_are_no_plan_are_refused() -> None:
    with pytest.raises(sparkfusion.SparkfusionError):
        Guard().check(replace(ONE, plan=b"\xff\xfe nonsense"))


@pytest.mark.parametrize("length", [0x7FFFFFF0, 0x4000], ids=["two gigabytes", "a little more than there is"])
def test_rows_in_a_plan_that_are_shorter_than_they_say_are_refused(length: int) -> None:
    """DataFusion would take that much memory, or more than there is."""
    order = order_of_sql("select x from t", KEY, "here", tables={"t": pa.table({"x": [1, 2]})})
    Guard().check(order)
    plan = decode(order.plan)
    (rows,) = plan.memory_scan.partitions
    plan.memory_scan.partitions[0] = rows[:4] + length.to_bytes(4, "little") + rows[8:]
    with pytest.raises(ProtocolError, match="rows of a memory table"):
        Guard().check(replace(order, plan=encode(plan)))


class Given:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def take(self, offset: int) -> bytes | None:
        return self._data

    def report_failure(self, offset: int) -> None:
        return

    def enough(self) -> None:
        return


def test_units_are_checked_as_they_come(data: Path) -> None:
    inside, outside = data / "allowed" / "t.parquet", data / "secret" / "t.parquet"
    guard = Guard(roots=(data / "allowed",))
    fine = Grant.of([encode_unit(FileUnit(str(inside)))]).data
    assert guard.units(Given(fine)).take(0) == fine
    for path in (str(outside), f"file://{outside}", str(data / "allowed" / ".." / "secret" / "t.parquet")):
        with pytest.raises(UserError, match="may not read"):
            guard.units(Given(Grant.of([encode_unit(FileUnit(path))]).data)).take(0)


def test_a_bomb_of_units_is_not_unpacked() -> None:
    bomb = zlib.compress(b" " * 10_000_000)
    with pytest.raises(ProtocolError, match="one reply contains more than 1,000 bytes of work units"):
        Guard(Limits(unit_bytes=1000)).units(Given(bomb)).take(0)
    with pytest.raises(ProtocolError, match="invalid work units"):
        Guard().units(Given(b"nonsense")).take(0)


def test_a_strict_worker_runs_no_function_of_a_query(start_worker: StartWorker, data: Path) -> None:
    worker = start_worker()
    from datafusion import udf

    with sparkfusion.connect(url_of([worker]), config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("t", str(data / "allowed" / "t.parquet"))
        same = udf(lambda x: x, [pa.int64()], pa.int64(), "immutable", name="same")
        session.register_udf(same)
        assert session.sql("select x from t where x > 0").to_pylist() == [{"x": 1}]
        with pytest.raises(UserError, match="does not run Python functions") as refused:
            session.sql("select same(x) as y from t where x > 0").to_pylist()
        assert "--trust-python" in str(refused.value)


@pytest.mark.long
def test_a_strict_worker_knows_the_functions_of_spark(start_worker: StartWorker, data: Path) -> None:
    """They are compiled code of DataFusion's, which every worker has."""
    with sparkfusion.connect(url_of([start_worker()]), config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("t", str(data / "allowed" / "t.parquet"))
        session.enable_spark_functions()
        frame = session.sql("select hex(x) as h, concat('a', nullif(x, 1)) as c from t where x > 0")
        assert frame.distribution().distributed
        assert frame.to_pylist() == [{"h": "1", "c": None}]


def test_a_function_that_spark_does_not_have_is_an_error_with_its_name() -> None:
    with pytest.raises(UserError, match="'no_such_function'"):
        task_context({SPARK_FUNCTIONS_OPTION: "concat,no_such_function"}, Surroundings(1 << 20))


def test_a_worker_with_roots_reads_below_them_only(start_worker: StartWorker, data: Path) -> None:
    worker = start_worker("--allow-root", str(data / "allowed"))
    with sparkfusion.connect(url_of([worker]), config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("fine", str(data / "allowed" / "t.parquet"))
        session.register_parquet("closed", str(data / "secret" / "t.parquet"))
        assert session.sql("select x from fine where x > 0").to_pylist() == [{"x": 1}]
        with pytest.raises(UserError, match="may not read"):
            session.sql("select x from closed where x > 0").to_pylist()
