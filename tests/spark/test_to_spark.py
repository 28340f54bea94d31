"""Answers as Spark DataFrames: the same rows as `collect`, computed when Spark asks, and usable like any DataFrame."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import udf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from sparkfusion import Session, UserError
from sparkfusion.exchange.owned import DIRECTORY_PREFIX
from sparkfusion.observe.events import QueryPlanned
from tests.behaviour.parts import DISTRIBUTED, PARTS, TOTAL, record, rows_of, write_parts
from tests.behaviour.probes import Counter, until
from tests.conftest import Connect
from tests.runners import some_first
from tests.spark.conf import settings
from tests.spark_session import scratch_of

# mapInArrow needs no pandas at all, but looks for it.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

SHUFFLED_JOINS = {
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
MEMORY = [[pa.record_batch({"k": [k, k + 3], "m": [f"memory {k}", None]})] for k in range(2)]
AGGREGATION = "select k, count(*) as n, sum(v) as s from t group by k"


def plus_one() -> datafusion.ScalarUDF:
    return udf(lambda values: pc.add(values, 1), [pa.int64()], pa.int64(), "immutable", "plus_one")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("t"))


def fill(session: Session, files: Path, spark: SparkSession) -> Session:
    session.register_parquet("t", files)
    session.register_record_batches("mem", MEMORY)
    session.register_spark("sp", spark.range(0, 300, 1, 5).selectExpr("id", "id % 7 as k", "string(id) as s"))
    session.register_udf(plus_one())
    return session


@pytest.fixture(scope="module")
def shared(connect_shared: Connect, files: Path, spark: SparkSession) -> Session:
    return fill(connect_shared(DISTRIBUTED), files, spark)


@pytest.fixture(scope="module")
def without_broadcast(connect_shared: Connect, files: Path, spark: SparkSession) -> Session:
    return fill(connect_shared({**DISTRIBUTED, **SHUFFLED_JOINS}), files, spark)


@pytest.fixture
def session(connect: Connect, files: Path, spark: SparkSession) -> Session:
    return fill(connect(DISTRIBUTED), files, spark)


def is_lazy(frame: DataFrame) -> bool:
    """Whether Spark has still to run our tasks for it."""
    return "MapInArrow" in frame._jdf.queryExecution().toString()


# ---- the same rows as collect()

QUERIES = {
    "filter": "select v, k from t where v % 3 = 0",
    "aggregation": AGGREGATION,
    "aggregation to one row": "select count(*) as n, sum(v) as s from t where v >= 0",
    "rollup": "select k, part, count(*) as n from t group by rollup(k, part)",
    "window": "select v, row_number() over (partition by k order by v desc) as r from t",
    "union all": "select v from t union all select v + 1 from t where k = 1",
    "broadcast join": "select v, m from t join mem on t.k = mem.k where v < 500",
    "outer join": "select a.v, b.v as w from t a full join (select v from t where k = 1) b on a.v = b.v * 2",
    "no rows": "select v, k from t where v < 0",
    "no groups": "select k, sum(v) as s from t where v < 0 group by k",
    "a function": "select k, sum(plus_one(v)) as s from t group by k",
    "from Spark": "select id, s from sp where id % 2 = 0",
    "from Spark, aggregated": "select k, count(*) as n, max(s) as m from sp group by k",
    "from Spark, joined with files": "select sp.s, t.v from sp join t on sp.id = t.v",
    "from Spark, twice": "select id from sp union all select id from sp where k = 1 union all select v from t",
}
FIRST = ("filter", "aggregation", "window", "no rows", "from Spark, aggregated", "from Spark, joined with files")


@pytest.mark.parametrize("query", some_first(QUERIES, FIRST))
def test_rows_are_those_of_collect(shared: Session, query: str) -> None:
    frame = shared.sql(query)
    out = frame.to_spark()
    assert is_lazy(out)
    assert rows_of(out.toArrow()) == rows_of(frame.collect())


def test_functions_of_spark_are_known(session: Session) -> None:
    session.enable_spark_functions()
    frame = session.sql("select hex(k) as h, count(concat('a', nullif(v, 1))) as n from t group by 1")
    out = frame.to_spark()
    assert is_lazy(out)
    assert rows_of(out.toArrow()) == rows_of(frame.collect())


@pytest.mark.long
def test_joins_that_shuffle(without_broadcast: Session) -> None:
    frame = without_broadcast.sql(
        "select a.v, b.v as w, m from t a join t b on a.v = b.v + 1 left join mem on a.k = mem.k"
    )
    graph = frame.distribution().graph
    assert graph is not None
    assert len([exchange for exchange in graph.exchanges if exchange.keys]) >= 3
    assert rows_of(frame.to_spark().toArrow()) == rows_of(frame.collect())


def test_order_is_kept_in_the_one_partition(shared: Session) -> None:
    out = shared.sql("select v from t order by v desc").to_spark()
    assert out.rdd.getNumPartitions() == 1
    assert [row.v for row in out.collect()] == list(range(TOTAL - 1, -1, -1))


def test_a_union_of_types_that_are_coerced(shared: Session) -> None:
    """DataFusion settles such types when it optimizes, after it has said what the frame's schema is."""
    frame = shared.sql("select v from t where v < 3 union all select 0.5 from t where v < 2")
    found = frame.collect()
    out = frame.to_spark().toArrow()
    assert rows_of(out) == rows_of(found)
    assert out.schema.types == found.schema.types == [pa.float64()]


TYPES = """
    select arrow_cast(v, 'UInt8') as u8, arrow_cast(v, 'UInt64') as u64, arrow_cast(v, 'Float16') as half,
        cast(v as decimal(10, 2)) / 3 as dec, to_timestamp(v) as nanos, arrow_cast(v, 'Date32') as day,
        arrow_cast(v * 1000000, 'Timestamp(Microsecond, Some("+02:00"))') as instant,
        arrow_cast(v, 'Timestamp(Second, None)') as local, arrow_cast('text', 'Utf8View') as view,
        named_struct('x', v, 'y', [arrow_cast(v, 'UInt16'), null]) as nested, map(['k'], [v]) as m,
        arrow_cast('d', 'Dictionary(Int8, Utf8)') as dict, null as nothing, x'00ff' as bytes
    from t where v = 7
"""


def test_types_that_spark_has_in_another_form(shared: Session, spark: SparkSession) -> None:
    with settings(spark, session__timeZone="Europe/Prague"):
        out = shared.sql(TYPES).to_spark()
        assert is_lazy(out)
        (row,) = out.toArrow().to_pylist()
    seconds = datetime(1970, 1, 1, 0, 0, 7)
    assert dict(out.dtypes) | {"dec": "…"} == {
        "u8": "smallint",
        "u64": "decimal(20,0)",
        "half": "float",
        "dec": "…",
        "nanos": "timestamp_ntz",
        "day": "date",
        "instant": "timestamp",
        "local": "timestamp_ntz",
        "view": "string",
        "nested": "struct<x:bigint,y:array<int>>",
        "m": "map<string,bigint>",
        "dict": "string",
        "nothing": "void",
        "bytes": "binary",
    }
    assert row == {
        "u8": 7,
        "u64": Decimal(7),
        "half": 7.0,
        "dec": shared.sql(TYPES).to_pylist()[0]["dec"],
        "nanos": seconds,
        "day": date(1970, 1, 8),
        "instant": seconds.replace(tzinfo=UTC),
        "local": seconds,
        "view": "text",
        "nested": {"x": 7, "y": [7, None]},
        "m": [("k", 7)],
        "dict": "d",
        "nothing": None,
        "bytes": b"\x00\xff",
    }


# ---- when it runs


def counting(counter: Counter) -> datafusion.ScalarUDF:
    """bigint → the same bigint, counting rows; unlike the one of `probes` it says that it always answers the same."""
    path = str(counter.path)

    def count(values: pa.Array) -> pa.Array:
        Counter(Path(path)).add(len(values))
        return values

    return udf(count, [pa.int64()], pa.int64(), "immutable", "counted")


def jobs(spark: SparkSession) -> int:
    """How many jobs without a group Spark has seen."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup())


def test_nothing_runs_until_spark_asks(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(counting(counter))
    events, before = record(session), jobs(spark)
    out = session.sql("select k, sum(counted(v)) as s from t group by k").to_spark()
    shaped = out.where("k > 2").select("s")
    assert (counter.value, jobs(spark), events) == (0, before, [])
    assert shaped.count() == 4
    assert counter.value == TOTAL
    assert out.count() == 7
    assert counter.value == TOTAL, "the shuffle's files were there to be read again"


@pytest.mark.long
@pytest.mark.parametrize(
    "query", ["select counted(v) as v from t limit 9", "select counted(v) + random() * 0 as v from t"]
)
def test_rows_that_may_differ_are_made_once_and_now(session: Session, tmp_path: Path, query: str) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(counting(counter))
    out = session.sql(query).to_spark()
    computed = counter.value
    assert computed > 0
    assert not is_lazy(out)
    first = sorted(row.v for row in out.collect())
    assert first == sorted(row.v for row in out.collect())
    assert len(first) == (9 if "limit" in query else TOTAL)
    assert counter.value == computed


def test_a_query_that_is_not_distributed_runs_now(session: Session) -> None:
    events = record(session)
    out = session.sql("select 1 as a, 'x' as b, null as c").to_spark()
    assert not is_lazy(out)
    assert [event.reason for event in events if isinstance(event, QueryPlanned)] != [None]
    assert [row.asDict() for row in out.collect()] == [{"a": 1, "b": "x", "c": None}]
    assert session.sql("select v from t where false").to_spark().toArrow() == pa.table({"v": pa.array([], pa.int64())})


# ---- what Spark does with it


@pytest.mark.long
def test_it_is_a_dataframe_like_any_other(shared: Session, spark: SparkSession, tmp_path: Path) -> None:
    out = shared.sql(AGGREGATION).to_spark()
    whole = sum(range(TOTAL))
    assert out.where("k >= 5").count() == 2
    assert out.groupBy((F.col("k") % 2).alias("odd")).agg(F.sum("s")).agg(F.sum("sum(s)")).collect()[0][0] == whole
    assert out.join(spark.range(3).withColumnRenamed("id", "k"), "k").count() == 3
    assert out.union(out).agg(F.sum("s")).collect()[0][0] == 2 * whole
    assert out.alias("a").join(out.alias("b"), F.col("a.k") == F.col("b.k") + 1).count() == 6
    assert out.repartition(3).agg(F.sum("n")).collect()[0][0] == TOTAL
    out.write.parquet(str(tmp_path / "out"))
    assert rows_of(pq.read_table(tmp_path / "out")) == rows_of(shared.sql(AGGREGATION).collect())


def test_it_is_cached_like_any_other(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(counting(counter))
    out = session.sql("select counted(v) as v from t").to_spark().cache()
    assert out.count() == out.distinct().count() == TOTAL
    assert counter.value == TOTAL
    out.unpersist(blocking=True)


def test_it_may_be_a_table_again(session: Session) -> None:
    joined = "select sum(s) as s, count(*) as n from {} as a join mem on a.k = mem.k"
    session.register_spark("again", session.sql(AGGREGATION).to_spark())
    assert session.sql(joined.format("again")).to_pylist() == session.sql(joined.format(f"({AGGREGATION})")).to_pylist()


def directories(spark: SparkSession) -> set[Path]:
    """What tasks and sessions have on this machine, now."""
    temporary, scratch = Path(tempfile.gettempdir()), scratch_of(spark)
    return {*temporary.glob(f"{DIRECTORY_PREFIX}*"), *scratch.rglob(f"{DIRECTORY_PREFIX}*")}


@pytest.mark.long
def test_a_reader_that_takes_a_few_rows_leaves_nothing(session: Session, spark: SparkSession) -> None:
    before = directories(spark)
    out = session.sql("select v from t where v >= 0").to_spark()
    assert len(out.take(3)) == len(out.limit(3).collect()) == 3
    assert out.first() is not None
    until(lambda: directories(spark) == before, "no directory of a task is left")


# ---- what outlives the session


OUTLIVING = {"aggregation": 7, "broadcast join": 286, "from Spark, aggregated": 7}


@pytest.mark.long
def test_it_outlives_its_session(session: Session) -> None:
    made = {name: session.sql(QUERIES[name]).to_spark() for name in OUTLIVING}
    session.close()
    assert {name: out.count() for name, out in made.items()} == OUTLIVING


def test_tables_in_memory_outlive_the_session(connect: Connect, files: Path, spark: SparkSession) -> None:
    """Even where they are too large to travel inside a plan."""
    session = fill(connect({**DISTRIBUTED, "sparkfusion.memory_table_bytes": 1}), files, spark)
    out = session.sql(QUERIES["broadcast join"]).to_spark()
    session.close()
    assert out.count() == OUTLIVING["broadcast join"]


# ---- what fails


@pytest.mark.parametrize(
    "query", ["select v / (v - 500) as q from t", "select k, sum(v / (v - 500)) as q from t group by k"]
)
def test_a_users_error_keeps_our_words(session: Session, query: str) -> None:
    out = session.sql(query).to_spark()
    with pytest.raises(Exception, match=r"sparkfusion\.errors\.UserError: .*Divide by zero"):
        out.collect()


@pytest.mark.long
def test_a_fault_that_is_mended_is_forgotten(session: Session, tmp_path: Path) -> None:
    """What Spark keeps between two actions must not be the error of the first."""
    fault = tmp_path / "fault"
    fault.touch()

    def fragile(values: pa.Array) -> pa.Array:
        if fault.exists():
            raise OSError(5, "IO error: the disk hiccups")
        return values

    session.register_udf(udf(fragile, [pa.int64()], pa.int64(), "immutable", "fragile"))
    out = session.sql("select k, sum(fragile(v)) as s from t group by k").to_spark()
    with pytest.raises(Exception, match="the disk hiccups"):
        out.count()
    fault.unlink()
    assert out.count() == 7


REFUSED: dict[str, tuple[str, str]] = {
    "a type": ("select v, interval '1 month' as i from t", "column 'i' of the result has type"),
    "two columns of one name": ("select a.v, b.v from t a join t b on a.v = b.v", "two of the columns are called 'v'"),
}


@pytest.mark.parametrize(("query", "message"), REFUSED.values(), ids=REFUSED)
def test_what_spark_cannot_take_is_refused_before_anything_runs(
    shared: Session, spark: SparkSession, query: str, message: str
) -> None:
    before = jobs(spark)
    with pytest.raises(UserError, match=message):
        shared.sql(query).to_spark()
    assert jobs(spark) == before


def test_partitions_are_those_of_the_last_stage(shared: Session) -> None:
    expected: dict[str, Any] = {
        "select v from t where v > 0": PARTS,
        AGGREGATION: PARTS,
        "select sum(v) as s from t": 1,
    }
    assert {query: shared.sql(query).to_spark().rdd.getNumPartitions() for query in expected} == expected
