"""What goes wrong is said clearly, with the user's own names; nothing is left and the session goes on."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import col

from sparkfusion import (
    PlanTooLargeError,
    ResourceError,
    Session,
    SparkfusionError,
    StoreFullError,
    UserError,
    feeds,
)
from sparkfusion.exchange import frames
from tests.behaviour.parts import DISTRIBUTED, assert_usable, part, record
from tests.conftest import Connect


def _truncated(path: Path) -> None:
    pq.write_table(part(0), path)
    path.write_bytes(path.read_bytes()[:-100])


def _garbage(path: Path) -> None:
    path.write_bytes(b"not Parquet at all" * 100)


def _lying(path: Path) -> None:
    """The footer claims a length that the file does not have. DataFusion panics."""
    path.write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")


def _damaged(path: Path) -> None:
    """Pages, not the footer that planning reads."""
    pq.write_table(part(0), path)
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 2000)


SAID = "nothing runs: it is about what is said"
BROKEN = {"truncated": _truncated, "garbage": _garbage, "lying": _lying}
BROKEN_WHEN_READ = BROKEN | {"damaged": _damaged}


@pytest.mark.parametrize("method", ["register_parquet", "register_csv", "register_json", "register_arrow"])
def test_missing_file_is_named(session: Session, tmp_path: Path, method: str) -> None:
    with pytest.raises(UserError, match=r"'orders'.*no file or directory at .*/missing'"):
        getattr(session, method)("orders", tmp_path / "missing")
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("method", ["read_parquet", "read_csv", "read_json", "read_arrow", "read_avro"])
def test_missing_file_is_named_when_read(session: Session, tmp_path: Path, method: str) -> None:
    with pytest.raises(UserError, match=r"no file or directory at .*/missing'"):
        getattr(session, method)(tmp_path / "missing")
    with pytest.raises(UserError, match=r"no file or directory at .*/missing\.txt'"):
        getattr(session, method)(path=str(tmp_path / "missing.txt"))
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("method", ["read_csv", "register_csv"])
def test_missing_file_of_several_is_named(session: Session, tmp_path: Path, method: str) -> None:
    there, missing = tmp_path / "there.csv", tmp_path / "missing.csv"
    there.write_text("a\n1\n")
    name = ["several"] if method == "register_csv" else []
    with pytest.raises(UserError, match=r"no file or directory at .*/missing\.csv'"):
        getattr(session, method)(*name, [str(there), str(missing)])


@pytest.mark.parametrize("breakage", BROKEN)
def test_unreadable_file_is_found_at_registration(session: Session, tmp_path: Path, breakage: str) -> None:
    path = tmp_path / "orders.parquet"
    BROKEN[breakage](path)
    with pytest.raises(UserError, match=r"cannot register table 'orders' from .*orders\.parquet.*(Parquet|panicked)"):
        session.register_parquet("orders", path)
    assert_usable(session)


@pytest.mark.parametrize("breakage", BROKEN_WHEN_READ)
def test_unreadable_file_is_found_at_run_time(session: Session, tmp_path: Path, breakage: str) -> None:
    home = tmp_path / "orders"
    home.mkdir()
    for number in range(3):
        pq.write_table(part(number), home / f"{number}.parquet")
    session.register_parquet("orders", home)
    BROKEN_WHEN_READ[breakage](home / "1.parquet")
    with pytest.raises(SparkfusionError, match=r"Parquet|panicked") as caught:
        session.sql("select k, count(*) from orders where v > 3 group by k").collect()
    assert "orders" in str(caught.value), "neither the table nor the file is named"
    if breakage in BROKEN:
        assert "orders/1.parquet" in str(caught.value)
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("breakage", BROKEN)
def test_every_call_names_an_unreadable_file(session: Session, tmp_path: Path, breakage: str) -> None:
    for home in ("old", "new"):
        (tmp_path / home).mkdir()
        pq.write_table(part(0), tmp_path / home / "0.parquet")
    session.register_parquet("orders", tmp_path / "old")
    unnamed = session.read_parquet(tmp_path / "old")
    BROKEN[breakage](tmp_path / "old" / "1.parquet")
    BROKEN[breakage](tmp_path / "new" / "1.parquet")
    orders = session.table("orders")
    calls: list[Callable[[], object]] = [
        lambda: session.read_parquet(tmp_path / "new"),
        lambda: session.sql(f"create external table made stored as parquet location '{tmp_path}/new/'"),
        lambda: session.sql("create table copied as select * from orders"),
        lambda: session.sql("explain select * from orders").collect(),
        lambda: session.sql(f"copy orders to '{tmp_path}/copied.csv'"),
        lambda: list(unnamed.stream()),
        orders.explain,
        orders.collect,
        orders.count,
        *([orders.describe] if breakage == "lying" else []),  # DataFusion's own hides other errors
        lambda: orders.write_parquet(tmp_path / "written"),
    ]
    for call in calls:
        with pytest.raises(UserError, match=r"/1\.parquet.*cannot be read"):
            call()
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
def test_one_lying_file_is_named(session: Session, tmp_path: Path) -> None:
    _lying(tmp_path / "orders.parquet")
    with pytest.raises(UserError, match=r"orders\.parquet.*cannot be read"):
        session.read_parquet(tmp_path / "orders.parquet")
    with pytest.raises(UserError, match=r"orders\.parquet.*cannot be read"):
        session.sql(f"create external table made stored as parquet location '{tmp_path}/orders.parquet'")
    assert_usable(session)


def test_a_lying_file_of_a_feed_is_named(session: Session, tmp_path: Path) -> None:
    pq.write_table(part(0), tmp_path / "0.parquet")
    _lying(tmp_path / "1.parquet")
    session.register_feed("pages", feeds.Files(tmp_path), schema=part(0).schema, format="parquet")
    with pytest.raises(SparkfusionError, match=r"(?s)'pages'.*panicked.*/1\.parquet"):
        session.sql("select count(v) from pages").collect()
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("*.parquet", r"no file matches '.*/\*\.parquet'"),
        ("home/", r"there is no parquet file in '.*/home/'"),
        ("zero.parquet", r"'.*/zero\.parquet' is empty, so it is not a valid parquet file"),
        ("zero.csv", r"'.*/zero\.csv' is empty, so its columns are unknown"),
        ("zero.json", r"'.*/zero\.json' is empty, so its columns are unknown"),
        ("array.json", r"'.*/array\.json' is a JSON array(.|\n)*one object per line"),
    ],
)
def test_files_without_a_table_are_named(session: Session, tmp_path: Path, source: str, said: str) -> None:
    tmp_path = tmp_path / "own"
    (tmp_path / "home").mkdir(parents=True)
    format = source.rpartition(".")[2] if "." in source else "parquet"
    if "*" not in source and "." in source:
        (tmp_path / source).write_text('[{"a": 1},\n {"a": 2}]' if "array" in source else "")
    path = f"{tmp_path}/{source}"
    for call in (
        lambda: getattr(session, f"read_{format}")(path),
        lambda: getattr(session, f"register_{format}")("t", path),
        lambda: session.sql(f"create external table made stored as {format} location '{path}'"),
    ):
        with pytest.raises(UserError, match=said):
            call()
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
def test_files_without_a_table_are_named_by_url(session: Session, tmp_path: Path) -> None:
    empty = tmp_path / "my zero.csv"
    empty.touch()
    with pytest.raises(UserError, match=r"my%20zero\.csv' is empty, so its columns are unknown"):
        session.read_csv(empty.as_uri())
    with pytest.raises(UserError, match=r"no file or directory at 'file:///.*/no%20such\.csv'"):
        session.read_csv((tmp_path / "no such.csv").as_uri())


@pytest.mark.runners("local", reason=SAID)
def test_an_empty_file_with_given_columns_has_no_rows(session: Session, tmp_path: Path) -> None:
    (tmp_path / "zero.csv").touch()
    assert session.read_csv(tmp_path / "zero.csv", schema=pa.schema([("a", pa.int64())])).count() == 0


@pytest.mark.runners("local", reason=SAID)
def test_the_hint_for_json_of_mixed_types_helps(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"a": 1}\n{"a": "x"}\n')
    with pytest.raises(UserError, match=r'rows\.json\', line 1(.|\n)*on_error="skip"'):
        session.read_json(path).collect()
    assert session.read_json(path, on_error="skip").to_pylist() == [{"a": "x"}]


def test_nested_values_do_not_fit_into_csv(session: Session, tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"x": 1}] * 5000}), tmp_path / "nested.parquet", row_group_size=1000)
    session.register_parquet("nested", tmp_path / "nested.parquet")
    for target in ("out.csv", "out/"):
        with pytest.raises(UserError, match="not supported in CSV") as caught:
            session.sql("select * from nested").write_csv(tmp_path / target)
        assert "leave the column out" in str(caught.value)
        assert "damaged" not in str(caught.value)
    assert_usable(session)


def test_file_that_vanishes_while_the_query_runs(session: Session, tmp_path: Path) -> None:
    home = tmp_path / "orders"
    home.mkdir()
    for number in range(3):
        pq.write_table(part(number), home / f"{number}.parquet")
    session.register_parquet("orders", home)
    events = record(session)

    def remove(event: object) -> None:
        for file in home.glob("*.parquet"):
            file.unlink(missing_ok=True)

    session.subscribe(remove)
    with pytest.raises(SparkfusionError, match=r"orders/\d\.parquet"):
        session.sql("select k, count(*) from orders where v > 3 group by k").collect()
    assert events


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("selec 1", "selec"),
        ("select * from nowhere", "nowhere"),
        ("select nothing from t", "nothing"),
        ("select no_function(v) from t", "no_function"),
        ("select k + 'x' from t", "Int64"),
        ("select sum(k) from t group by nothing", "nothing"),
        ("", "No SQL statements"),
        ("select 1; select 2", "single SQL statement"),
        ("select * from t limit -1", "LIMIT"),
    ],
)
def test_wrong_sql_names_what_is_wrong(session: Session, query: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        session.sql(query).collect()
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
def test_what_datafusion_does_not_support_is_the_users_error(session: Session) -> None:
    with pytest.raises(UserError, match=r"(?s)DISTINCT.*DataFusion does not support this yet"):
        session.sql("select approx_median(k), approx_median(distinct k) from (values (1), (2)) as t(k)").collect()
    assert_usable(session)


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("name", ["nowhere", "no_schema.nowhere", "no_catalog.no_schema.nowhere"])
def test_unknown_table_by_name(session: Session, name: str) -> None:
    with pytest.raises(UserError) as caught:
        session.table(name)
    assert name.partition(".")[0] in caught.value.message
    assert not caught.value.message.startswith('"')
    assert caught.value.hint == "known tables: t"


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize(
    "query",
    [
        "select * from Lineitm",
        "insert into lineitm values (1)",
        "select k from t where k in (select k from public.lineitm)",
        "drop table lineitm",
    ],
)
def test_unknown_table_has_those_that_are_known_as_a_hint(session: Session, query: str) -> None:
    """Close names first."""
    session.sql("create schema other")
    for name in ("aaa", "lineitem", '"Mixed Case"', "other.lineitems", "zzz"):
        session.sql(f"create table {name} as select 1 as k")
    with pytest.raises(UserError, match="lineitm") as caught:
        session.sql(query)
    assert (
        caught.value.hint
        == 'did you mean lineitem? known tables: lineitem, other.lineitems, "Mixed Case", aaa, t and 1 more'
    )


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select cuont(*) from people", "did you mean count?"),
        ("select nmae from people", 'did you mean people."Name"?'),
        ("select * from poeple", "did you mean people? known tables: people, t"),
        ("select xyzzy_of_nothing(1)", None),
    ],
)
def test_names_that_are_near_to_a_wrong_one_are_suggested(session: Session, query: str, hint: str | None) -> None:
    session.sql('create table people as select 1 as "Name"')
    with pytest.raises(UserError) as caught:
        session.sql(query)
    assert caught.value.hint == hint


@pytest.mark.runners("local", reason=SAID)
def test_unknown_table_where_there_is_none(connect: Connect) -> None:
    session = connect({})
    with pytest.raises(UserError) as caught:
        session.sql("select * from nowhere")
    assert caught.value.hint == "no table is registered"


@pytest.mark.runners("local", reason=SAID)
def test_unknown_table_beside_a_frame_among_the_values(session: Session) -> None:
    """The view that DataFusion makes of the frame is neither told nor left."""
    with pytest.raises(UserError) as caught:
        session.sql("select * from $frame join nowhere on true", frame=session.sql("select 1 as one"))
    assert caught.value.hint == "known tables: t"
    assert session.catalog().schema().names() == {"t"}


TAKING = {
    "register_record_batches": lambda session: session.register_record_batches("t", [part(0).to_batches()]),
    "register_view": lambda session: session.register_view("t", session.sql("select 1")),
    "from_pydict": lambda session: session.from_pydict({"a": [1]}, name="t"),
    "create table": lambda session: session.sql("create table t as select 1"),
    "create view": lambda session: session.sql("create view t as select 1"),
    "register_feed": lambda session: session.register_feed(
        "t", feeds.Items([1], lambda unit, context: None, schema=pa.schema([]))
    ),
}


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("how", TAKING)
def test_a_name_that_is_taken_can_be_freed(session: Session, how: str) -> None:
    with pytest.raises(UserError, match="already exists") as caught:
        TAKING[how](session)
    assert "Python function" not in caught.value.message, "DataFusion asks our catalog, which is no function of theirs"
    assert "session.deregister_table('t')" in (caught.value.hint or "")
    session.deregister_table("t")
    TAKING[how](session)
    assert session.table_exist("t")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select k, sum(v / (v - 500)) from t group by k", "Divide by zero"),
        ("select v / (v - 500) as q from t", "Divide by zero"),
        ("select k, max(cast(concat(cast(v as string), 'x') as int)) from t group by k", "Cannot cast string '.*x'"),
        ("select arrow_cast(v + 9223372036854775000, 'Int8') as q from t where v > 5", "cast"),
    ],
)
def test_error_at_run_time_names_query_stage_and_task(session: Session, query: str, message: str) -> None:
    events = record(session)
    frame = session.sql(query)
    assert frame.distribution().distributed
    with pytest.raises(UserError, match=f"(?i){message}") as caught:
        frame.collect()
    where = caught.value.where
    assert where is not None
    assert where.query == events[0].query
    assert f"stage {where.stage}, task {where.task}" in str(caught.value)
    assert_usable(session)


def test_function_that_raises(session: Session) -> None:
    def refuse(values: pa.Array) -> pa.Array:
        raise ValueError("I do not like these values")

    session.register_udf(datafusion.udf(refuse, [pa.int64()], pa.int64(), "immutable", "refuse"))
    events = record(session)
    with pytest.raises(UserError, match="I do not like these values") as caught:
        session.sql("select k, sum(refuse(v)) from t group by k").collect()
    assert f"in the Python function refuse ({__file__}, line " in str(caught.value)
    assert "stage 1, task" in str(caught.value)
    failed = [event for event in events if type(event).__name__ == "TaskFailed"]
    assert not any(event.retried for event in failed)  # type: ignore[attr-defined]
    assert_usable(session)


def test_function_that_gives_the_wrong_number_of_rows_is_the_users_error(session: Session) -> None:
    session.register_udf(datafusion.udf(lambda values: values[:1], [pa.int64()], pa.int64(), "immutable", "short"))
    events = record(session)
    with pytest.raises(UserError, match="short returned a different number of rows"):
        session.sql("select k, sum(short(v)) from t group by k").collect()
    assert not any(event.retried for event in events if type(event).__name__ == "TaskFailed")  # type: ignore[attr-defined]


class _Unreadable:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("1 / 0",)


def test_function_that_cannot_be_unpickled(session: Session) -> None:
    unreadable = _Unreadable()

    def use(values: pa.Array) -> pa.Array:
        assert unreadable is not None
        return values

    session.register_udf(datafusion.udf(use, [pa.int64()], pa.int64(), "immutable", "unreadable"))
    frame = session.sql("select k, sum(unreadable(v)) as s from t group by k")
    assert "division by zero" in (frame.distribution().reason or "")
    assert frame.collect().num_rows == frame.to_datafusion().to_arrow_table().num_rows
    assert_usable(session)


def test_full_disk_in_the_store(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames.FrameFileWriter, "write", frames.FrameFileWriter.write)  # put back if tasks run here
    full = tmp_path / "the disk is full"
    full.touch()
    session.register_udf(_disk_filler(full))
    with pytest.raises(StoreFullError, match="no space is left for intermediate data") as caught:
        session.sql("select k, sum(fill_disk(v)) from t group by k").collect()
    assert "sparkfusion.store_dir" in str(caught.value)
    full.unlink()
    assert_usable(session)


def _disk_filler(full: Path) -> datafusion.ScalarUDF:
    """bigint → the same bigint. From then on the process that called it cannot write frames, while that file exists."""
    path = str(full)

    def fill_disk(values: pa.Array) -> pa.Array:
        write = frames.FrameFileWriter.write

        def no_space(self: frames.FrameFileWriter, batch: pa.RecordBatch) -> int:
            if Path(path).exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(self, batch)

        frames.FrameFileWriter.write = no_space  # type: ignore[method-assign]
        return values

    return datafusion.udf(fill_disk, [pa.int64()], pa.int64(), "volatile", "fill_disk")


def test_plan_over_the_size_limit(session: Session) -> None:
    values = ", ".join(str(1_000_003 * number) for number in range(3000))
    session.config["sparkfusion.max_plan_bytes"] = 4096
    with pytest.raises(PlanTooLargeError, match=r"the plan over t takes .* bytes") as caught:
        session.sql(f"select k, count(*) from t where v in ({values}) group by k").collect()
    assert "sparkfusion.max_plan_bytes" in str(caught.value)
    del session.config["sparkfusion.max_plan_bytes"]
    assert_usable(session)


@pytest.mark.runners("local", "spark-local", "spark-shared", reason="Spark's shuffle is in no directory of ours")
def test_store_directory_that_does_not_exist(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(session.config, "sparkfusion.store_dir", str(tmp_path / "nowhere"))
        with pytest.raises(ResourceError, match="nowhere") as caught:
            session.sql("select k, count(*) from t group by k").collect()
        assert "sparkfusion.store_dir" in str(caught.value)
    assert_usable(session)


def test_store_directory_that_does_not_exist_for_memory_tables(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1})
    session.config["sparkfusion.store_dir"] = str(tmp_path / "nowhere")
    session.from_arrow(part(0), "m")
    with pytest.raises(ResourceError, match="nowhere"):
        session.sql("select k, count(*) from m group by k").collect()


def test_too_little_memory_says_what_to_do(session: Session) -> None:
    session.config["sparkfusion.task_memory_bytes"] = 1000
    with pytest.raises(ResourceError, match=r"sparkfusion\.task_memory_bytes"):
        session.sql("select v, count(*) from t group by v").collect()
    del session.config["sparkfusion.task_memory_bytes"]
    assert_usable(session)


def test_messages_have_no_names_of_ours(session: Session, tmp_path: Path) -> None:
    """Neither of the views that COPY makes, nor of DataFusion's unnamed tables, nor advice for who writes Rust."""
    read = session.read_parquet(tmp_path / "parts")
    attempts: list[Callable[[], Any]] = [
        lambda: session.sql(f"copy t to '{tmp_path}/o/' stored as parquet partitioned by (nope)"),
        lambda: session.table("t").write_parquet(tmp_path / "o", partition_by=["nope"]),
        lambda: read.select("nope"),
        lambda: read.filter(col("nope") > 1),
        lambda: session.register_parquet("far", "s3://bucket/far/"),
        lambda: session.sql("create external table far stored as parquet location 's3://bucket/far/'"),
        lambda: session.sql("copy t to 's3://bucket/far/' stored as parquet"),
    ]
    for attempt in attempts:
        with pytest.raises(UserError) as raised:
            attempt()
        said = str(raised.value)
        assert "nope" in said or "s3://" in said
        assert not re.search(r"sparkfusion_|\?table\?|RuntimeEnv|Internal error", said), said
