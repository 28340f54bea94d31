"""Session: tables from everywhere, SQL with parameters, DDL, and nothing running before an action."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import datafusion
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from datafusion.options import CsvReadOptions

import sparkfusion
from sparkfusion import DataFrame, Session, SparkfusionError, UserError
from tests.behaviour.parts import (
    DISTRIBUTED,
    PARTS,
    TOTAL,
    assert_distributed_like_single_node,
    names_of,
    part,
    record,
    rows_of,
    single_node,
    write_parts,
)
from tests.conftest import Connect

# ---- life


def test_nothing_runs_before_an_action(session: Session) -> None:
    events = record(session)
    frame = session.sql("select k, v from t where v > 10").aggregate(
        [datafusion.col("k")], [datafusion.functions.sum(datafusion.col("v"))]
    )
    frame.sort("k").limit(3).schema()
    frame.distribution()
    frame.explain_text()
    assert frame.columns[0] == "k"
    session.sql("create view lazy as select k, count(*) as n from t group by k")
    assert events == []
    frame.collect()
    assert "TaskStarted" in names_of(events)


def test_sessions_do_not_see_each_others_tables_or_settings(connect: Connect, session: Session) -> None:
    other = connect()
    other.config["sparkfusion.slots"] = 3
    assert session.config["sparkfusion.slots"] == "0"
    with pytest.raises(UserError, match=r"'.*t' not found"):
        other.sql("select * from t")


def test_unknown_target_is_refused() -> None:
    with pytest.raises(UserError, match=r"cannot connect to 'nowhere://'"):
        sparkfusion.connect("nowhere://")


def test_close_may_be_called_twice_and_a_closed_session_says_so(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    frame = session.sql("select k, count(*) as n from t group by k")
    session.close()
    session.close()
    with pytest.raises(UserError, match="closed"):
        frame.collect()
    with pytest.raises(UserError, match="closed"):
        session.sql("select 1").collect()


def test_a_closed_session_cannot_leave_files(connect: Connect) -> None:
    """The leak check of every test looks at what this one leaves."""
    session = connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1})
    session.from_arrow(part(0), "m")
    session.close()
    with pytest.raises(SparkfusionError):
        session.sql("select k, count(*) from m group by k").collect()


# ---- tables


def _csv(path: Path) -> Path:
    for number in range(PARTS):
        path.mkdir(exist_ok=True)
        pyarrow.csv.write_csv(part(number), path / f"{number}.csv")
    return path


def _json(path: Path) -> Path:
    path.mkdir()
    for number in range(PARTS):
        lines = (str(row).replace("'", '"') for row in part(number).to_pylist())
        (path / f"{number}.json").write_text("\n".join(lines))
    return path


def _arrow(path: Path) -> Path:
    path.mkdir()
    for number in range(PARTS):
        with pa.ipc.new_file(path / f"{number}.arrow", part(number).schema) as writer:
            writer.write_table(part(number))
    return path


def _batches() -> list[list[pa.RecordBatch]]:
    return [part(number).to_batches() for number in range(PARTS)]


REGISTER: dict[str, Callable[[Session, Path], object]] = {
    "parquet": lambda s, p: s.register_parquet("x", write_parts(p)),
    "parquet by keywords": lambda s, p: s.register_parquet(name="x", path=str(write_parts(p))),
    "csv": lambda s, p: s.register_csv("x", _csv(p / "csv")),
    "json": lambda s, p: s.register_json("x", _json(p / "json")),
    "arrow": lambda s, p: s.register_arrow("x", _arrow(p / "arrow")),
    "listing table": lambda s, p: s.register_listing_table("x", str(write_parts(p)), file_extension=".parquet"),
    "record batches": lambda s, p: s.register_record_batches("x", _batches()),
    "record batches by keywords": lambda s, p: s.register_record_batches(name="x", partitions=_batches()),
    "view": lambda s, p: (s.register_parquet("y", write_parts(p)), s.register_view("x", s.sql("select * from y"))),
    "external table": lambda s, p: s.sql(
        f"create external table x stored as parquet location '{write_parts(p)}/'"
    ).collect(),
    "table from a query": lambda s, p: (
        s.register_parquet("y", write_parts(p)),
        s.sql("create table x as select * from y").collect(),
    ),
    "sql view": lambda s, p: (s.register_parquet("y", write_parts(p)), s.sql("create view x as select * from y")),
}


@pytest.mark.parametrize("register", REGISTER.values(), ids=REGISTER)
def test_registered_tables_are_distributed(
    connect: Connect, tmp_path: Path, register: Callable[[Session, Path], object]
) -> None:
    session = connect(DISTRIBUTED)
    register(session, tmp_path)
    frame = session.sql("select k, count(*) as n, sum(v) as s from x group by k")
    found = assert_distributed_like_single_node(frame)
    assert sum(found["n"].to_pylist()) == TOTAL
    assert sum(found["s"].to_pylist()) == sum(range(TOTAL))


def _everything() -> pa.Table:
    return pa.concat_tables(part(number) for number in range(PARTS))


FROM: dict[str, Callable[[Session, Path], DataFrame]] = {
    "arrow": lambda s, p: s.from_arrow(_everything()),
    "arrow, named": lambda s, p: s.from_arrow(_everything(), "named"),
    "pandas": lambda s, p: s.from_pandas(pd.DataFrame(_everything().to_pydict())),
    "polars": lambda s, p: s.from_polars(pl.DataFrame(_everything().to_pydict())),
    "pydict": lambda s, p: s.from_pydict(_everything().to_pydict()),
    "pylist": lambda s, p: s.from_pylist(_everything().to_pylist()),
    "read parquet": lambda s, p: s.read_parquet(write_parts(p)),
    "read csv": lambda s, p: s.read_csv(_csv(p / "csv")),
    "read json": lambda s, p: s.read_json(_json(p / "json")),
    "read arrow": lambda s, p: s.read_arrow(_arrow(p / "arrow")),
}


@pytest.mark.parametrize("make", FROM.values(), ids=FROM)
def test_frames_from_everywhere(connect: Connect, tmp_path: Path, make: Callable[[Session, Path], DataFrame]) -> None:
    frame = make(connect(DISTRIBUTED), tmp_path)
    grouped = frame.aggregate([datafusion.col("k")], [datafusion.functions.sum(datafusion.col("v")).alias("s")])
    assert rows_of(grouped.collect()) == [(k, sum(v for v in range(TOTAL) if v % 7 == k)) for k in range(7)]


@pytest.mark.parametrize(
    "name", ['with "quotes"', "with.dot", "Ünïcödé 表", "sel'ect", "semi;colon", "Upper", " ", "%41"]
)
def test_odd_names_of_tables_columns_and_files(connect: Connect, tmp_path: Path, name: str) -> None:
    session = connect(DISTRIBUTED)
    quoted = '"' + name.replace('"', '""') + '"'
    for number in range(2):
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        pq.write_table(part(number).rename_columns(["part", "k", name]), home / f"{number} {name}.parquet")
    session.register_parquet(quoted, home)
    frame = session.sql(f"select k, sum({quoted}) as {quoted} from {quoted} group by k")
    assert_distributed_like_single_node(frame)


def test_a_frame_of_another_session_can_be_a_view(connect: Connect, session: Session) -> None:
    other = connect(DISTRIBUTED)
    other.register_view("borrowed", session.table("t"))
    assert_distributed_like_single_node(other.sql("select k, count(*) as n from borrowed group by k"))


def test_deregistered_table_is_gone(session: Session) -> None:
    assert session.table_exist("t")
    session.deregister_table("t")
    assert not session.table_exist("t")
    with pytest.raises(UserError, match=r"'.*t' not found"):
        session.sql("select * from t")


def _zipped_csv(directory: Path) -> Path:
    """Files whose names do not tell that they are compressed: only the table's options do."""
    home = directory / "zipped"
    home.mkdir()
    for number in range(3):
        with gzip.open(home / f"{number}.dat", "wt") as file:
            file.write("a,b\n" + "".join(f"{i},{i}\n" for i in range(number * 100, number * 100 + 100)))
    return home


ZIPPED = CsvReadOptions(file_compression_type="gzip", file_extension=".dat")


@pytest.mark.parametrize(
    ("name", "used"),
    [("x", "x"), ("x", "public.x"), ("x", "x as y"), ("Upper", "upper"), ('"a b"', '"a b"'), ("public.x", "x")],
)
def test_options_that_plans_lose_do_not_change_the_answer(
    connect: Connect, tmp_path: Path, name: str, used: str
) -> None:
    session = connect(DISTRIBUTED)
    session.register_csv(name, _zipped_csv(tmp_path), options=ZIPPED)
    assert session.sql(f"select sum(b) as s from {used} where a >= 0").to_pylist() == [{"s": sum(range(300))}]


@pytest.mark.parametrize(("name", "used"), [("x", "x"), ("X", "x"), ("public.x", "x"), ('"a b"', '"a b"')])
@pytest.mark.parametrize("comment", ["", "-- mine\n"])
def test_options_of_external_tables_that_plans_lose_do_not_change_the_answer(
    connect: Connect, tmp_path: Path, name: str, used: str, comment: str
) -> None:
    session = connect(DISTRIBUTED)
    session.sql(
        f"{comment}create external table {name} stored as csv location '{_zipped_csv(tmp_path)}/*.dat'"
        " options ('format.has_header' 'true', 'format.compression' 'gzip')"
    )
    assert session.sql(f"select sum(b) as s from {used} where a >= 0").to_pylist() == [{"s": sum(range(300))}]


def test_options_of_read_csv_that_plans_lose_do_not_change_the_answer(connect: Connect, tmp_path: Path) -> None:
    frame = connect(DISTRIBUTED).read_csv(_zipped_csv(tmp_path), options=ZIPPED)
    total = frame.aggregate([], [datafusion.functions.sum(datafusion.col("b")).alias("s")])
    assert total.to_pylist() == [{"s": sum(range(300))}]


# ---- SQL


def test_parameters_are_values(session: Session) -> None:
    frame = session.sql("select count(*) as n from t where k = $k and v < $v", param_values={"k": 1, "v": 50})
    assert frame.to_pylist() == [{"n": 7}]
    hostile = session.sql("select count(*) as n from t where cast(k as string) = $k", param_values={"k": "1' or 1=1"})
    assert hostile.to_pylist() == [{"n": 0}]


def test_named_parameters_may_be_frames(session: Session) -> None:
    small = session.sql("select * from t where v < 10")
    assert session.sql("select count(*) as n from $small where k = $k", small=small, k=1).to_pylist() == [{"n": 2}]


def test_a_frame_given_as_parameter_is_not_left_in_the_catalog(session: Session) -> None:
    before = rows_of(session.sql("show tables").collect())
    session.sql("select count(*) as n from $small", small=session.table("t")).collect()
    assert rows_of(session.sql("show tables").collect()) == before


def test_show_tables_and_describe(session: Session) -> None:
    assert "t" in session.sql("show tables").to_pydict()["table_name"]
    assert session.sql("describe t").to_pydict()["column_name"] == ["part", "k", "v"]


def test_schemas_have_no_owner(session: Session) -> None:
    shown = session.sql("select schema_name, schema_owner from information_schema.schemata").to_pylist()
    assert shown == [{"schema_name": "public", "schema_owner": None}]


def test_insert_into(session: Session, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    session.sql(f"create external table target (k bigint, v bigint) stored as parquet location '{target}/'")
    inserted = session.sql("insert into target select k, sum(v) from t group by k").to_pylist()
    assert inserted == [{"count": 7}]
    assert rows_of(session.table("target").collect()) == rows_of(
        session.sql("select k, sum(v) from t group by k").collect()
    )


@pytest.mark.parametrize(
    "statement", ["create table made as select 1 as a", "create view made as select 1 as a", "drop table t"]
)
def test_explain_of_ddl_does_not_do_it(session: Session, statement: str) -> None:
    session.sql(f"explain {statement}")
    assert session.table_exist("t")
    assert not session.table_exist("made")


def test_explain_takes_parameters(session: Session) -> None:
    shown = session.sql("explain select k, count(*) from t where v > $v group by k", param_values={"v": 5})
    assert "distributed_plan" in shown.to_pydict()["plan_type"]


@pytest.mark.parametrize("comment", ["-- why\n", "/* why */ "])
def test_comments_before_statements(session: Session, comment: str) -> None:
    session.sql(f"{comment}set sparkfusion.slots = 3")
    assert session.sql(f"{comment}show sparkfusion.slots").to_pydict()["value"] == ["3"]
    assert "distributed_plan" in session.sql(f"{comment}explain select 1").to_pydict()["plan_type"]


# ---- edges


@pytest.mark.parametrize(
    "query",
    [
        "select * from t limit 9223372036854775807",
        "select * from t offset 9223372036854775807",
        "select * from t limit 0",
        "select v from t where false",
        "select k, count(*) as n from t where v < 0 group by k",
        "select count(*) as n from t where v < 0",
        "select a.*, b.* from t a join t b on a.v = b.v",
        "select k, array_agg(v order by v) as vs, struct(k, k + 1) as s from t group by k",
        "select 1 as one",
    ],
)
@pytest.mark.parametrize("partitions", [1, 3, 16])
@pytest.mark.sample("local")
def test_edges_answer_like_a_single_node(session: Session, query: str, partitions: int) -> None:
    session.config["datafusion.execution.target_partitions"] = partitions
    frame = session.sql(query)
    found = frame.collect()
    assert rows_of(found) == rows_of(single_node(frame))
    assert found.schema == frame.schema()


def test_memory_tables_of_odd_shapes(connect: Connect) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1})
    first, second = pa.record_batch({"d": [1, 2]}), pa.record_batch({"d": [1, 2]})
    session.register_record_batches("uneven", [[first], [second], []])
    assert rows_of(session.sql("select d, count(*) as n from uneven group by d").collect()) == [(1, 2), (2, 2)]
    assert session.from_arrow(pa.table({})).collect().num_rows == 0
    assert session.from_arrow(pa.table({"a": [1, 2]}).select([])).count() == 2
    assert session.from_arrow(part(0).slice(0, 0)).collect().schema == part(0).schema


def test_memory_tables_with_a_dictionary_for_each_batch(connect: Connect) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.memory_table_bytes": 1})
    batches = [pa.record_batch({"d": pa.array(words).dictionary_encode()}) for words in (["a", "b"], ["b", "c"])]
    session.register_record_batches("words", [batches, batches])
    found = session.sql("select d, count(*) as n from words group by d").collect()
    assert sorted((row["d"], row["n"]) for row in found.to_pylist()) == [("a", 2), ("b", 4), ("c", 2)]


def test_showing_and_setting_leave_no_table_behind(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    before = set(session.context.catalog().schema().names())
    frame = session.sql("select k, count(*) as n from t group by k")
    frame.show()
    assert frame._repr_html_()
    assert frame.cache().count() == frame.count()
    session.sql("explain select k from t").collect()
    session.sql("show sparkfusion.slots").collect()
    assert session.sql("set sparkfusion.slots = 2").collect().num_rows == 0
    assert set(session.context.catalog().schema().names()) == before
    assert capsys.readouterr().out
