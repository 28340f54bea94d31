"""Registered DataFrames answer like the same rows on a single node, wherever frames are; what is refused is clear."""

from __future__ import annotations

import gc
import json
import random
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext, udf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from sparkfusion import Session, SparkfusionError, UserError
from sparkfusion.runner.spark.spark_types import arrow_schema
from tests.behaviour.parts import DISTRIBUTED, rows_of
from tests.behaviour.probes import Counter, Gate, until
from tests.conftest import Connect
from tests.runners import ALL_ON_SPARK, some_first
from tests.spark.conf import settings
from tests.spark.test_spark_types import EXPORTED, ZONE
from tests.spark.watch import wait_for_no_jobs

STORES = (pytest.param("local", marks=pytest.mark.long), "spark")
RECURSIVE = "with recursive r as (select id from {0} union all select id + 1 from r where id < 3) select * from r"
OPTIONS = {**DISTRIBUTED, **ALL_ON_SPARK}


@pytest.fixture(scope="module", params=STORES)
def shared(request: pytest.FixtureRequest, connect_shared: Connect) -> Session:
    """A session for tests that only add tables of their own to it."""
    return connect_shared({**OPTIONS, "sparkfusion.store": request.param})


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(OPTIONS)


@pytest.fixture(params=STORES)
def stored(request: pytest.FixtureRequest, connect: Connect) -> Session:
    """A session of the test's own, with frames in files or in Spark's shuffle."""
    return connect({**OPTIONS, "sparkfusion.store": request.param})


# ---- the same answers


def people(spark: SparkSession) -> DataFrame:
    """200 rows in six partitions, the first of them empty, with nulls and nested columns."""
    return (
        spark.range(-40, 200, 1, 6)
        .where("id >= 0")
        .selectExpr(
            "id",
            "id % 7 as k",
            "if(id % 5 = 0, null, concat('name ', id)) as name",
            "cast(id as double) / 4 as share",
            "array(id, null, id * 2) as numbers",
            "named_struct('a', id * 3, 'b', named_struct('c', if(id % 2 = 0, null, string(id)))) as info",
        )
    )


def tables(spark: SparkSession) -> dict[str, DataFrame]:
    """DataFrames whose partitions differ: fewer than tasks, more than parts, empty ones, none, after shuffles."""
    whole = people(spark)
    return {
        "people": whole,
        "few": spark.range(0, 30, 1, 1),
        "many": spark.range(0, 300, 1, 37),
        "sparse": spark.range(0, 400, 1, 8).where("id >= 395"),
        "nothing": spark.range(0, 100, 1, 5).where("id < 0"),
        "no_partition": spark.createDataFrame(spark.sparkContext.emptyRDD(), "id bigint"),
        "grouped": whole.groupBy("k").agg(F.count("name").alias("n"), F.max("id").alias("id")),
        "joined": whole.join(spark.range(50), "id").select("id", "name"),
        "sorted": whole.orderBy(F.desc("id")).select("id"),
        "limited": whole.limit(11).select("id"),
        "cached": whole.select("id", "k").cache(),
    }


@pytest.fixture(scope="module")
def reference(
    shared: Session, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SessionContext]:
    """Single-node DataFusion over what Spark itself gives; and the same tables in the session, from Spark."""
    context = SessionContext()
    made = tables(spark)
    for name, frame in made.items():
        schema = pa.schema([f.with_nullable(True) for f in arrow_schema(frame.schema, str(spark.conf.get(_ZONE)))])
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        context.register_record_batches(name, [[pa.RecordBatch.from_pylist(rows, schema)]])
        shared.register_spark(name, frame)
    files = tmp_path_factory.mktemp("dim")
    for number in range(3):
        part = {"k": list(range(number, 9, 3)), "label": [f"label {k}" for k in range(number, 9, 3)]}
        pq.write_table(pa.table(part), files / f"{number}.parquet")
    memory = [[pa.record_batch({"k": [k, k + 3], "weight": [k * 10, None]})] for k in range(3)]
    for each in (context, shared):
        each.register_parquet("dim", str(files))
        each.register_record_batches("mem", memory)
    yield context
    made["cached"].unpersist()


_ZONE = "spark.sql.session.timeZone"
SOURCES = ("people", "few", "many", "sparse", "nothing", "no_partition", "grouped", "joined", "sorted", "cached")
QUERIES = {
    "every source, aggregated": " union all ".join(
        f"select '{name}' as source, count(*) as n, sum(id) as s, min(id) as least from {name}" for name in SOURCES
    ),
    "filter": "select id, name, numbers, info from people where id % 3 = 0",
    "aggregation": "select k, count(*) as n, count(name) as c, sum(id) as s, max(info) as m from people group by k",
    "distinct": "select count(distinct k) as n, count(distinct name) as m from people",
    "window": "select id, row_number() over (partition by k order by id) as r, lag(name) over (order by id) as l"
    " from people",
    "no column": "select 1 as one from people",
    "count": "select count(*) as n from people",
    "nested": "select info['b']['c'] as c, numbers[3] as n, array_length(numbers) as l from people where info['a'] > 9",
    "self join": "select a.id, b.name from people a join people b on a.id = b.id + 1",
    "self join without keys": "select count(*) as n, sum(a.id * b.id) as s from few a join few b on a.id < b.id",
    "outer join of two": "select p.id, g.n from people p full join grouped g on p.id = g.id",
    "union all": "select id from people union all select id + 1 from many union all select k from people",
    "with files and memory": "select label, weight, count(*) as n, sum(id) as s from people join dim using (k)"
    " left join mem using (k) group by label, weight",
    "subquery": "select id from many where id in (select id from people where k = 1)"
    " and id > (select min(id) + 20 from joined)",
}
FIRST = ("every source, aggregated", "filter", "no column", "outer join of two", "with files and memory", "subquery")


@pytest.mark.parametrize("query", some_first(QUERIES, FIRST))
def test_answers_are_those_of_a_single_node(shared: Session, reference: SessionContext, query: str) -> None:
    frame = shared.sql(query)
    assert frame.distribution().distributed
    found, expected = frame.collect(), reference.sql(query).to_arrow_table()
    assert rows_of(found) == rows_of(expected)
    assert found.schema.types == expected.schema.types


def test_order_is_kept(shared: Session, reference: SessionContext) -> None:
    query = "select id, name from people order by name desc nulls last, id limit 9 offset 2"
    assert shared.sql(query).to_pylist() == reference.sql(query).to_arrow_table().to_pylist()
    assert shared.sql("select id from many order by id").to_pydict() == {"id": list(range(300))}


@pytest.mark.long
def test_rows_flow_from_partitions_that_have_some(shared: Session, reference: SessionContext) -> None:
    """`limited` is not in the reference: which rows it has is Spark's choice, but it has eleven."""
    for name, rows in {"few": 30, "many": 300, "joined": 50, "limited": 11, "no_partition": 0}.items():
        assert shared.sql(f"select * from {name}").collect().num_rows == rows


@pytest.mark.long
def test_partitions_without_rows_stream_too(stored: Session, spark: SparkSession) -> None:
    stored.register_spark("sparse", spark.range(0, 400, 1, 8).where("id >= 395"))
    stored.register_spark("nothing", spark.range(0, 100, 1, 5).where("id < 0"))
    assert sorted(stored.sql("select id from sparse").to_pydict()["id"]) == [395, 396, 397, 398, 399]
    assert stored.sql("select id from nothing").collect() == pa.table({"id": pa.array([], pa.int64())})


def shuffled_by_chance(spark: SparkSession) -> DataFrame:
    """Each row once in every evaluation, but in another partition each time: `orderBy` does that, too, by sampling."""
    anywhere = F.udf(lambda _: random.randrange(1_000_000), "int").asNondeterministic()
    return spark.range(0, 400, 1, 2).repartition(8, anywhere("id"))


def test_all_tasks_read_the_same_evaluation(stored: Session, spark: SparkSession) -> None:
    stored.register_spark("t", shuffled_by_chance(spark))
    assert sorted(stored.sql("select id from t").to_pydict()["id"]) == list(range(400))
    assert stored.sql("select count(*) as n, sum(id) as s from t").to_pylist() == [{"n": 400, "s": sum(range(400))}]


def test_a_task_that_is_tried_again_reads_the_same_evaluation(
    stored: Session, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the coordinator, where Spark tries once: with a master of `local[2]`."""
    monkeypatch.setattr("sparkfusion.runner.spark.spark_job.attempts_of", lambda _: 1)
    counter = Counter(tmp_path / "count")
    stored.register_udf(_fails_once(counter, 0))
    stored.register_spark("t", shuffled_by_chance(spark))
    found = stored.sql("select count(*) as n, sum(fails_once(id)) as s from t").to_pylist()
    assert counter.value >= 1
    assert found == [{"n": 400, "s": sum(range(400))}]


def _fails_once(counter: Counter, at: int) -> Any:
    path = str(counter.path)

    def fails_once(values: pa.Array) -> pa.Array:
        if at in values.to_pylist():
            seen = Counter(Path(path))
            seen.add()
            if seen.value == 1:
                raise OSError(5, "IO error: the disk hiccups")
        return values

    return udf(fails_once, [pa.int64()], pa.int64(), "immutable", "fails_once")


# ---- types, columns and names


@pytest.fixture
def every_type(spark: SparkSession) -> Iterator[DataFrame]:
    with settings(spark, session__timeZone=ZONE, timeType__enabled="true"):
        first = ", ".join(f"{case.first} as {name}" for name, case in EXPORTED.items())
        second, nulls = ", ".join(case.second for case in EXPORTED.values()), ", ".join("null" for _ in EXPORTED)
        yield spark.sql(f"select {first} union all select {second} union all select {nulls}")


def test_every_type_at_once(stored: Session, every_type: DataFrame) -> None:
    stored.register_spark("t", every_type)
    found = stored.sql("select * from t").collect()
    assert found.schema.types == [case.type for case in EXPORTED.values()]
    for name, case in EXPORTED.items():
        column = found[name]
        if pa.types.is_timestamp(column.type) and column.type.tz is not None:
            column = column.cast(pa.timestamp("us", "UTC"))
        assert sorted(column.to_pylist(), key=repr) == sorted([*case.values, None], key=repr), name


def test_every_type_unread(session: Session, every_type: DataFrame) -> None:
    """A column that nobody reads comes as NULL of its type."""
    session.register_spark("t", every_type)
    assert sorted(session.sql("select byte from t where byte is not null").to_pydict()["byte"]) == [-128, 127]


@pytest.mark.long
def test_columns_that_are_not_read_are_not_computed(shared: Session, spark: SparkSession) -> None:
    frame = spark.range(0, 50, 1, 4).select("id", F.raise_error(F.lit("computed")).cast("string").alias("never"))
    shared.register_spark("guarded", frame)
    assert shared.sql("select sum(id) as s from guarded where id > 1").to_pylist() == [{"s": 1224}]
    assert shared.sql("select 1 as one from guarded").collect().num_rows == 50
    with pytest.raises(SparkfusionError, match="computed"):
        shared.sql("select max(never) from guarded").collect()


def test_a_count_reads_no_column(session: Session, spark: SparkSession) -> None:
    frame = spark.range(0, 50, 1, 4).select(F.raise_error(F.lit("computed")).cast("string").alias("never"))
    session.register_spark("guarded", frame)
    assert session.sql("select count(*) as n from guarded").to_pylist() == [{"n": 50}]


COLUMNS = ["a b", "A", "a.b", "x`y", 'q"q', "it's", "žluť 🐎", "%41", "/", "", "count(*)", "a\nb"]


def test_columns_of_any_name(session: Session, spark: SparkSession) -> None:
    numbered = [F.lit(number).cast("long").alias(f"c{number}") for number in range(len(COLUMNS))]
    session.register_spark("t", spark.range(0, 3, 1, 3).select(*numbered).toDF(*COLUMNS))
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in COLUMNS}
    items = ", ".join(f"sum({quoted[name]}) as s{number}" for number, name in enumerate(COLUMNS) if number % 2)
    assert list(session.sql(f"select {items} from t").to_pylist()[0].values()) == [3, 9, 15, 21, 27, 33]
    assert session.sql("select * from t").collect().column_names == COLUMNS


def test_columns_that_differ_in_case_only(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3).toDF("a").crossJoin(spark.range(10, 12).toDF("A")))
    assert session.sql('select sum(a) as s, sum("A") as t from t').to_pylist() == [{"s": 6, "t": 63}]


NAMES = ["My Table", 'tab"le', "it's", "žluť 🐎", "x/y", "*", "50%", "per%20cent", "#?", "a\\b", "select"]
DOTTED = ["a b.c d", ".."]


@pytest.mark.long
@pytest.mark.parametrize("names", [NAMES, DOTTED], ids=["plain", "dotted"])
def test_tables_of_any_name(session: Session, spark: SparkSession, names: list[str]) -> None:
    for name in names:
        session.register_spark(name, spark.range(0, 5, 1, 2))
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    every = " union all ".join(f"select id from {name}" for name in quoted)
    assert session.sql(f"select count(*) as n, sum(id) as s from ({every})").to_pylist() == [
        {"n": 5 * len(names), "s": 10 * len(names)}
    ]
    for name, shown in zip(quoted, names, strict=True):
        with pytest.raises(UserError, match="cannot be distributed") as caught:
            session.sql(RECURSIVE.format(name)).collect()
        assert shown in caught.value.message


@pytest.mark.parametrize(("registered", "read"), [("UPPER", "upper"), ('"Quoted"', '"Quoted"'), ("other.t", "other.t")])
def test_names_are_taken_as_datafusion_takes_them(
    session: Session, spark: SparkSession, registered: str, read: str
) -> None:
    session.sql("create schema other")
    session.register_spark(registered, spark.range(5))
    assert session.sql(f"select sum(id) as s from {read}").to_pylist() == [{"s": 10}]
    with pytest.raises(UserError, match="from Spark, but cannot be distributed"):
        session.sql(RECURSIVE.format(read)).collect()


def test_explain_shows_the_table_and_what_is_read(session: Session, spark: SparkSession) -> None:
    session.register_spark("My Table", people(spark))
    text = session.sql('select k, count(*) from "My Table" group by k').explain_text()
    assert "My Table part 0" in text
    assert "projection=[k]" in text
    assert "adopted-tables" not in text


# ---- sizes


@pytest.fixture
def sized(connect: Connect, spark: SparkSession, tmp_path: Path) -> Session:
    """A session with a table of files, and a small threshold for what goes to every task."""
    made = connect({**OPTIONS, "sparkfusion.broadcast_bytes": 40_000})
    for number in range(3):
        rows = {"id": range(number, 3000, 3), "text": [f"{n**20:0>70}" for n in range(number, 3000, 3)]}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    made.register_parquet("files", str(tmp_path))
    made.sql("set datafusion.optimizer.hash_join_single_partition_threshold = 0")
    made.sql("set datafusion.optimizer.hash_join_single_partition_threshold_rows = 0")
    return made


def join_of(session: Session) -> tuple[str, str]:
    """The mode of the join, and which table is built, of a query that has the files first."""
    query = session.sql("select count(*) as n, max(text) as t from files join t on files.id = t.id")
    assert query.to_pylist() == [{"n": 3000, "t": f"{2999**20:0>70}"}]
    stages = json.loads(query.explain_text(format="json"))["stages"]
    join = next(each for each in stages if any("HashJoinExec" in line for line in each["operators"]))
    mode = "broadcast" if "CollectLeft" in str(join["operators"]) else "shuffle"
    built = stages[join["inputs"][0] - 1]
    return mode, "t" if any(leaf.startswith("t part") for leaf in built["leaves"]) else "files"


def test_a_small_table_goes_to_every_task(sized: Session, spark: SparkSession) -> None:
    """Spark says that it has 24,000 bytes."""
    sized.register_spark("t", spark.range(0, 3000, 1, 2))
    assert join_of(sized) == ("broadcast", "t")


@pytest.mark.long
def test_the_smaller_of_two_tables_is_built(sized: Session, spark: SparkSession) -> None:
    """Spark says nothing useful of rows that come from an RDD."""
    frame = spark.range(0, 3000, 1, 2).repartition(2).rdd.toDF()
    sized.register_spark("t", frame, bytes=1 << 50)
    assert join_of(sized) == ("shuffle", "files")
    sized.deregister_table("t")
    sized.register_spark("t", frame, rows=3000)
    assert join_of(sized) == ("broadcast", "t")
    sized.sql("set sparkfusion.broadcast_bytes = 10000")
    assert join_of(sized) == ("shuffle", "t")


@pytest.mark.parametrize("size", ["rows", "bytes"])
def test_sizes_are_not_negative(session: Session, spark: SparkSession, size: Literal["rows", "bytes"]) -> None:
    with pytest.raises(UserError, match=f"{size}=-1 must be a number of at least 0"):
        session.register_spark("t", spark.range(3), **{size: -1})


# ---- where rows come from


def test_a_table_or_view_by_its_name(session: Session, spark: SparkSession) -> None:
    spark.range(7).createOrReplaceTempView("seven")
    session.register_spark("t", "seven")
    assert session.sql("select count(id) as n from t").to_pylist() == [{"n": 7}]
    spark.catalog.dropTempView("seven")


def test_a_name_that_spark_does_not_know(session: Session) -> None:
    with pytest.raises(UserError, match="no_such_table"):
        session.register_spark("t", "no_such_table")


def test_the_same_name_again(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3))
    with pytest.raises(UserError, match="t already exists"):
        session.register_spark("t", spark.range(4))
    assert session.sql("select count(id) as n from t").to_pylist() == [{"n": 3}]
    session.deregister_table("t")
    with pytest.raises(UserError, match="not found"):
        session.sql("select count(id) as n from t")
    session.register_spark("t", spark.range(4))
    assert session.sql("select count(id) as n from t").to_pylist() == [{"n": 4}]


def test_a_name_that_is_not_sparks_any_more(session: Session, spark: SparkSession) -> None:
    """The new table has nothing to do with Spark: it may be read by what is not distributed."""
    session.register_spark("t", spark.range(3))
    session.deregister_table("t")
    session.register_record_batches("t", [[pa.record_batch({"id": [1, 2]})]])
    assert session.sql(RECURSIVE.format("t")).collect().num_rows == 5


def test_a_dataframe_of_another_session_of_the_same_spark(session: Session, spark: SparkSession) -> None:
    """Its own settings decide how its rows come."""
    other = spark.newSession()
    other.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    session.register_spark("t", other.sql("select 'abc' as s, 5 as n union all select 'de', 6"))
    assert rows_of(session.sql("select s, n from t").collect()) == [("abc", 5), ("de", 6)]


@pytest.mark.parametrize("source", [5, None, ["a"], pa.table({"a": [1]})], ids=["int", "none", "list", "arrow"])
def test_what_is_no_dataframe(session: Session, source: object) -> None:
    with pytest.raises(UserError, match=r"cannot register a .* as a Spark table"):
        session.register_spark("t", source)


def test_a_streaming_dataframe(session: Session, spark: SparkSession) -> None:
    with pytest.raises(UserError, match="streaming DataFrame"):
        session.register_spark("t", spark.readStream.format("rate").load())


# ---- what fails


@pytest.mark.parametrize("query", ["select id from t where false", "select id from t limit 0"])
def test_queries_that_need_no_rows_need_no_spark(session: Session, spark: SparkSession, query: str) -> None:
    """Tools ask like this for the columns of a table."""
    session.register_spark("t", spark.range(3))
    assert session.sql(query).collect() == pa.table({"id": pa.array([], pa.int64())})


REFUSED: dict[str, Callable[[Session], object]] = {
    "recursion": lambda session: session.sql(RECURSIVE.format("t")).collect(),
    "recursion, explained": lambda session: session.sql(RECURSIVE.format("t")).explain_text(),
    "recursion, to Spark": lambda session: session.sql(RECURSIVE.format("t")).to_spark(),
    "recursion, written": lambda session: session.sql(RECURSIVE.format("t")).write_csv("/nowhere/out"),
    "distribution is off": lambda session: (
        session.sql("set sparkfusion.enabled = false"),
        session.table("t").collect(),
    ),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
def test_what_is_not_distributed_names_the_table(
    session: Session, spark: SparkSession, ask: Callable[[Session], object]
) -> None:
    session.register_spark("t", spark.range(3))
    with pytest.raises(UserError, match="the query reads t from Spark, but cannot be distributed") as caught:
        ask(session)
    enabled = session.config["sparkfusion.enabled"] == "true"
    assert ("write the table to Parquet" if enabled else "SET sparkfusion.enabled = true") in (caught.value.hint or "")


def test_datafusion_by_itself_does_not_find_it_empty(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3))
    for query in ("select id from t", "select count(*) from t", "select max(id) from t"):
        with pytest.raises(Exception, match="Ipc error"):
            session.sql(query).to_datafusion().collect()


def test_it_cannot_be_overwritten(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3))
    with pytest.raises(UserError, match="cannot run INSERT OVERWRITE t: t is a Spark DataFrame"):
        session.sql("insert overwrite t values (1)")


def test_nothing_can_be_inserted(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.range(3))
    with pytest.raises(UserError):
        session.sql("insert into t values (7)").collect()
    assert session.sql("select count(id) as n from t").to_pylist() == [{"n": 3}]


def test_a_time_zone_that_changes_after_registration(session: Session, spark: SparkSession) -> None:
    session.register_spark("t", spark.sql("select timestamp'2024-01-01' as at, 1 as one"))
    session.register_spark("plain", spark.range(3))
    with settings(spark, session__timeZone="Asia/Tokyo"):
        with pytest.raises(UserError, match="settings changed after the DataFrame was registered") as caught:
            session.sql("select at from t").collect()
        assert "spark.sql.session.timeZone" in str(caught.value.hint)
        assert session.sql("select count(id) as n from plain").to_pylist() == [{"n": 3}]
    assert session.sql("select count(at) as n from t").to_pylist() == [{"n": 1}]


FAILING = {
    "in its last stage": lambda frame: frame,
    "below a shuffle": lambda frame: frame.groupBy("x").count(),
}


@pytest.mark.parametrize("shape", FAILING.values(), ids=FAILING)
def test_a_dataframe_that_fails_speaks_sparks_words(
    stored: Session, spark: SparkSession, shape: Callable[[DataFrame], DataFrame]
) -> None:
    trouble = F.when(F.col("id") == 50, F.raise_error(F.lit("fifty is not liked"))).otherwise(F.col("id"))
    stored.register_spark("t", shape(spark.range(0, 100, 1, 4).select(trouble.cast("long").alias("x"))))
    with pytest.raises(SparkfusionError, match="fifty is not liked") as caught:
        stored.sql("select x from t").collect()
    assert "\tat org.apache" not in str(caught.value)
    assert stored.sql("select 1 as one").to_pylist() == [{"one": 1}]


def held(spark: SparkSession, gate: Gate, at: int) -> DataFrame:
    """100 rows in four partitions; the one that holds `at` waits at the gate."""
    hold = gate.hold()

    # without type hints: Spark takes those of a function that it does not know for a mistake
    waiting = F.udf(lambda value: (value == at and hold(), value)[1], "long")
    return spark.range(0, 100, 1, 4).select(waiting("id").alias("x"))


def test_a_limit_does_not_wait_for_partitions_that_are_not_needed(
    stored: Session, spark: SparkSession, tmp_path: Path
) -> None:
    with Gate(tmp_path) as gate:
        stored.register_spark("t", held(spark, gate, at=99))
        assert stored.sql("select x from t limit 5").collect().num_rows == 5
        wait_for_no_jobs(spark)


@pytest.mark.parametrize("shuffled", [False, True], ids=["plain", "below a shuffle"])
def test_closing_early_stops_the_dataframe_too(
    stored: Session, spark: SparkSession, tmp_path: Path, shuffled: bool
) -> None:
    with Gate(tmp_path) as gate:
        frame = held(spark, gate, at=10)
        stored.register_spark("t", frame.groupBy("x").count() if shuffled else frame)
        running = stored.sql("select x from t").stream()
        gate.wait_for_arrivals()
        running.close()
        wait_for_no_jobs(spark)


@pytest.mark.long
def test_a_dropped_table_goes_with_the_last_frame_that_reads_it(session: Session, spark: SparkSession) -> None:
    before = placeholders()
    rows = spark.range(100).toDF("id")
    session.register_spark("numbers", rows)
    alive = weakref.ref(rows)
    del rows
    frame = session.sql("select count(*) as n from numbers where id >= 0")
    running = session.sql("select id % 7 as k, count(*) as n from numbers group by 1").stream()
    session.sql("drop table numbers")
    gc.collect()
    assert sum(sum(batch.column("n").to_pylist()) for batch in running) == 100
    assert frame.to_pylist() == [{"n": 100}]
    assert alive() is not None
    assert placeholders() != before
    del frame, running

    def is_gone() -> bool:
        gc.collect()
        return alive() is None and placeholders() == before

    until(is_gone, "the DataFrame and its placeholder are gone")


def placeholders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("sparkfusion-*-adopted-tables-*/*/*"))
