"""Tables of Spark's catalog in an object store. Spark reads the same files from this machine, by a stand-in for its
client; DataFusion reads them from a small S3 server, which notes what it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session
from tests.conftest import Connect
from tests.spark.catalog_rows import assert_like_spark, database, how
from tests.spark.compiled_java import java_classes
from tests.suites.fake_s3 import FakeS3, fake_s3

pytestmark = pytest.mark.long  # it starts an object store

SPLIT = {"sparkfusion.bytes_per_partition": 1}
_CLIENT = """
import java.net.URI;

public class LocalClient extends org.apache.hadoop.fs.RawLocalFileSystem {
    public URI getUri() { return URI.create("s3a://bucket"); }
    public String getScheme() { return "s3a"; }
}
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


@pytest.fixture(scope="module")
def db(spark: SparkSession, s3: FakeS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("store")
    jvm: Any = spark.sparkContext._jvm
    with java_classes(spark, home / "java", {"stub.LocalClient": _CLIENT}), database(spark, "sf_store", home) as name:
        conf = jvm.org.apache.hadoop.conf.Configuration()  # with this thread's classes
        conf.set("fs.s3a.impl", "stub.LocalClient")
        client = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("s3a://bucket"), conf)  # found by all now
        columns = (
            "id, timestamp_micros(id * 1000000007 - 20000000000000000) as at, date'2024-02-29' as day, id % 3 as p"
        )
        spark.sql(f"create table {name}.local using parquet partitioned by (p) as select {columns} from range(30)")
        place = f"{home}/local"
        spark.sql(
            f"create table {name}.remote (id bigint, at timestamp, day date, more string, p bigint) using parquet "
            f"partitioned by (p) location 's3a://bucket{place}'"
        )
        spark.sql(f"alter table {name}.remote recover partitions")
        for path in Path(place).rglob("*.parquet"):
            s3.objects[f"bucket{path}"] = path.read_bytes()
        yield name
        client.close()


@pytest.fixture(scope="module")
def session(connect_shared: Connect, s3: FakeS3) -> Session:
    made = connect_shared(SPLIT)
    made.register_object_store("s3://", s3.store_maker(), "bucket")
    return made


def test_with_a_store_datafusion_reads_the_files(session: Session, spark: SparkSession, db: str, s3: FakeS3) -> None:
    shown = how(session, f"{db}.remote")
    assert shown.endswith("Parquet files at s3://bucket, read by DataFusion")
    assert_like_spark(session, spark, f"select * from {db}.remote")
    s3.requests.clear()
    assert_like_spark(session, spark, f"select id, at, p from {db}.remote where p = 1 and id > 3")
    asked = {part for request in s3.requests for part in ("p=0", "p=1", "p=2") if part in request.replace("%3D", "=")}
    assert asked == {"p=1"}
    joined = f"select count(*) as n, sum(r.id) as s from {db}.remote r join {db}.local l on r.id = l.id + 1"
    assert_like_spark(session, spark, joined)


def test_without_a_store_explain_says_what_is_missing(connect: Connect, spark: SparkSession, db: str) -> None:
    session = connect(SPLIT)
    assert how(session, f"{db}.remote") == (
        "through Spark, because its files are at s3a://bucket, and this session has no object store for that: after "
        "register_object_store('s3://', …, 'bucket') DataFusion reads them"
    )
    assert_like_spark(session, spark, f"select * from {db}.remote")
