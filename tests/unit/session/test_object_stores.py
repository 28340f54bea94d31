"""Object stores: live ones and functions that make them, in this process and as a recipe for others."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from datafusion.object_store import LocalFileSystem

import sparkfusion
from sparkfusion import ExternalError, Session, UserError
from sparkfusion.session.object_stores import ObjectStores, StoreRecipe
from tests.suites.fake_s3 import SECRET, FakeS3, fake_s3

SQL = "select k, count(*) as n from t group by k order by k"
ROWS = [{"k": k, "n": 40} for k in range(5)]


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    """A bucket with a table of two files."""
    with fake_s3() as server:
        for part in range(2):
            server.put_table(f"t/{part}.parquet", pa.table({"k": [number % 5 for number in range(100)]}))
        yield server


@pytest.fixture
def session() -> Iterator[Session]:
    distributed = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 2}
    with sparkfusion.connect(config=distributed) as session:
        yield session


def plans_of(session: Session, sql: str) -> list[bytes]:
    graph = session.sql(sql).distribution().graph
    assert graph is not None
    return [stage.plan for stage in graph.stages]


@pytest.mark.parametrize("live", [True, False])
def test_a_distributed_query_reads_a_bucket(s3: FakeS3, session: Session, live: bool) -> None:
    make = s3.store_maker()
    session.register_object_store("s3://", make() if live else make, "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    assert session.sql(SQL).distribution().distributed
    assert session.sql(SQL).to_pylist() == ROWS
    assert "DataSourceExec: file_groups=2" in session.sql(SQL).explain_text()
    assert "── ran as " in session.sql(SQL).explain_text(analyze=True)


def test_a_recipe_works_in_another_context_and_makes_a_store_once(s3: FakeS3, session: Session, tmp_path: Path) -> None:
    make, calls = s3.store_maker(), tmp_path / "calls"

    def counted() -> Any:
        with open(calls, "a") as file:
            file.write("x")
        return make()

    session.register_object_store("s3://", counted, "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    recipe = session._engine.tables.object_stores.recipe(plans_of(session, SQL))
    here = calls.read_text()
    data = pickle.dumps(recipe)
    for _ in range(3):
        context = SessionContext()
        pickle.loads(data)(context)
        context.register_parquet("t", "s3://bucket/t/")
        assert context.sql(SQL).to_pylist() == ROWS
    assert calls.read_text() == here + "x"
    assert SECRET not in repr(recipe)


def test_a_live_store_cannot_travel(s3: FakeS3, session: Session, tmp_path: Path) -> None:
    session.register_object_store("s3://", s3.store_maker()(), "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    with pytest.raises(UserError, match=r"executors cannot read s3://bucket/: the object store of 's3://'") as caught:
        session._engine.tables.object_stores.recipe(plans_of(session, SQL))
    assert "pass a function" in str(caught.value)
    (tmp_path / "local").mkdir()
    for part in range(2):
        pq.write_table(pa.table({"k": list(range(100))}), tmp_path / "local" / f"{part}.parquet")
    session.register_parquet("local", tmp_path / "local")
    session.register_object_store("file://", LocalFileSystem())  # executors have their own
    recipe = session._engine.tables.object_stores.recipe(plans_of(session, "select k, count(*) from local group by k"))
    assert recipe is None


def test_the_newest_store_wins(s3: FakeS3, session: Session) -> None:
    session.register_object_store("s3://", FakeS3("127.0.0.1:1").store_maker()(), "bucket")
    session.register_object_store("s3://", s3.store_maker(), "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    assert session.sql(SQL).to_pylist() == ROWS
    recipe = session._engine.tables.object_stores.recipe(plans_of(session, SQL))
    assert recipe is not None
    assert len(recipe.stores) == 1
    session.register_object_store("s3://", s3.store_maker()(), "bucket")
    with pytest.raises(UserError, match="executors cannot read"):
        session._engine.tables.object_stores.recipe(plans_of(session, SQL))


def test_stores_of_other_buckets_do_not_matter(s3: FakeS3, session: Session) -> None:
    elsewhere = FakeS3("127.0.0.1:1").store_maker()()
    for host in ("buck", "bucket2", None):
        session.register_object_store("s3://", elsewhere, host)
    session.register_object_store("s3://", s3.store_maker(), "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    recipe = session._engine.tables.object_stores.recipe(plans_of(session, SQL))
    assert recipe is not None
    assert [host for _, host, _ in recipe.stores] == ["bucket"]


def test_without_stores_there_is_no_recipe(session: Session) -> None:
    assert session._engine.tables.object_stores.recipe([b"not even a plan"]) is None


def test_a_function_that_cannot_travel() -> None:
    stores, lock, make = ObjectStores(), threading.Lock(), FakeS3("127.0.0.1:1").store_maker()

    def locked() -> Any:
        with lock:
            return make()

    stores.add(SessionContext(), "s3://", locked, "bucket")
    with pytest.raises(UserError, match=r"the object store of 's3://' cannot be pickled: .*lock"):
        stores.recipe([])


def failing(error: Exception) -> Callable[[], Any]:
    def make() -> Any:
        raise error

    return make


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("no such region"), UserError), (ConnectionError("no such region"), ExternalError)]
)
def test_a_function_that_fails(session: Session, error: Exception, kind: type[Exception]) -> None:
    words = f"the function that makes the object store of 's3://' failed: {type(error).__name__}: no such region"
    with pytest.raises(kind, match=words):
        session.register_object_store("s3://", failing(error), "bucket")


def test_a_function_that_an_executor_cannot_load() -> None:
    recipe = StoreRecipe((("s3://", "bucket", b"\x80\x05\x95\x00c_no_module_\nf\n."),))
    with pytest.raises(UserError, match=r"object store of 's3://' failed: \w+"):
        recipe(SessionContext())


def test_s3a_and_s3_are_the_same_bucket() -> None:
    stores, make = ObjectStores(), FakeS3("127.0.0.1:1").store_maker()
    assert stores.same_place("s3a://bucket") is None
    stores.add(SessionContext(), "s3://", make)  # of which bucket, only DataFusion knows
    assert stores.same_place("s3a://bucket") is None
    stores.add(SessionContext(), "s3://", make, "bucket")
    assert [stores.same_place(f"{scheme}://bucket") for scheme in ("s3", "s3a", "s3n")] == ["s3://bucket"] * 3
    assert stores.same_place("s3a://other") is None
    assert stores.same_place("gs://bucket") is None
    stores.add(SessionContext(), "s3a://", make, "bucket")
    assert stores.same_place("s3a://bucket") == "s3a://bucket"
