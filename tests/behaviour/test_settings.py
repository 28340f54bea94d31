"""Settings: SET, SHOW, RESET and session.config are one thing, for DataFusion's options and for ours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.config import SETTINGS
from sparkfusion.observe.events import TaskStarted
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.parts import DISTRIBUTED, TOTAL, record, write_parts
from tests.conftest import Connect

BATCH_SIZE = "datafusion.execution.batch_size"
SLOTS = "sparkfusion.slots"
NO_TASK = pytest.mark.runners("local", reason="no query runs, so the runner makes no difference")


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect()


@NO_TASK
@pytest.mark.parametrize("name", [BATCH_SIZE, SLOTS])
def test_set_show_and_config_agree(session: Session, name: str) -> None:
    session.sql(f"SET {name} = 17")
    assert session.config[name] == "17"
    assert session.sql(f"show {name}").to_pylist() == [{"name": name, "value": "17"}]
    session.config[name] = 18
    assert session.sql(f"SHOW {name};").to_pydict()["value"] == ["18"]
    session.sql(f"set {name} to '19';")
    assert session.config[name] == "19"


@NO_TASK
@pytest.mark.parametrize("name", [BATCH_SIZE, SLOTS])
def test_reset_brings_the_default_back(session: Session, name: str) -> None:
    default = session.config[name]
    session.config[name] = 17
    session.sql(f"RESET {name}")
    assert session.config[name] == default
    session.config[name] = 17
    del session.config[name]
    assert session.config[name] == default


@NO_TASK
def test_show_all_lists_everything(session: Session) -> None:
    shown = {row["name"]: row["value"] for row in session.sql("show all").to_pylist()}
    assert {setting.name for setting in SETTINGS} <= set(shown)
    assert BATCH_SIZE in shown
    assert dict(session.config) == {name: value for name, value in shown.items() if value is not None}
    assert len(session.config) == len(dict(session.config))


@NO_TASK
def test_settings_of_connect_take_effect(connect: Connect) -> None:
    session = connect({SLOTS: 3, BATCH_SIZE: 99, "datafusion.execution.time_zone": "Europe/Vienna"})
    assert (session.config[SLOTS], session.config[BATCH_SIZE]) == ("3", "99")
    assert session.config["datafusion.execution.time_zone"] == "Europe/Vienna"


@NO_TASK
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("sparkfusion.bytes_per_partition", "4MiB", str(4 * 2**20)),
        ("sparkfusion.bytes_per_partition", "1_000", "1000"),
        ("sparkfusion.store_memory_bytes", "2 g", str(2 * 2**30)),
        ("sparkfusion.enabled", False, "false"),
        ("sparkfusion.enabled", "TRUE", "true"),
        ("sparkfusion.frame_compression", "lz4", "lz4"),
        ("sparkfusion.store_dir", "/tmp/it's", "/tmp/it's"),
        ("datafusion.execution.collect_statistics", True, "true"),
        ("datafusion.execution.time_zone", "+02:00", "+02:00"),
    ],
)
def test_values_in_their_forms(session: Session, name: str, value: object, shown: str) -> None:
    session.config[name] = value
    assert session.config[name] == shown
    quoted = str(value).replace("'", "''")
    session.sql(f"set {name} = '{quoted}'")
    assert session.config[name] == shown


@NO_TASK
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sparkfusion.slot", "1", "unknown setting 'sparkfusion.slot'"),
        ("datafusion.execution.nothing", "1", "datafusion.execution.nothing"),
        ("nothing", "1", "nothing"),
        ("sparkfusion.slots", "many", "takes a whole number, not 'many'"),
        ("sparkfusion.slots", "-1", "at least 0"),
        ("sparkfusion.channel_frames", "0", "at least 1"),
        ("sparkfusion.bytes_per_partition", "12 parsecs", "takes a size such as"),
        ("sparkfusion.enabled", "perhaps", "takes true or false"),
        ("sparkfusion.frame_compression", "rar", "none, lz4, zstd"),
        ("datafusion.execution.batch_size", "x", "batch_size"),
        ("datafusion.execution.batch_size", "0", "batch_size"),
    ],
)
def test_wrong_settings_are_refused_and_change_nothing(session: Session, name: str, value: str, message: str) -> None:
    before = dict(session.config)
    with pytest.raises(UserError, match=message):
        session.config[name] = value
    with pytest.raises(UserError, match=message):
        session.sql(f"set {name} = '{value}'")
    with pytest.raises(UserError, match=message):
        sparkfusion.connect(config={name: value})
    assert dict(session.config) == before


@NO_TASK
def test_a_misspelt_setting_gets_a_suggestion(session: Session) -> None:
    with pytest.raises(UserError, match=r"did you mean 'sparkfusion\.slots'"):
        session.config["sparkfusion.slot"] = 1


@NO_TASK
def test_config_is_a_mapping(session: Session) -> None:
    assert SLOTS in session.config
    assert "sparkfusion.nothing" not in session.config
    assert "nothing" not in session.config
    assert session.config.get("sparkfusion.nothing", "none") == "none"


@pytest.fixture
def over_parts(connect: Connect, tmp_path: Path) -> Session:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session


def test_the_batch_size_reaches_the_tasks(over_parts: Session) -> None:
    def size(values: pa.Array) -> pa.Array:
        return pa.array([len(values)] * len(values), pa.int64())

    over_parts.register_udf(udf(size, [pa.int64()], pa.int64(), "volatile", "size"))
    for batch_size in (50, 125):
        over_parts.config[BATCH_SIZE] = batch_size
        with over_parts.sql("select size(v) as n from t").stream() as rows:
            batches = list(rows)
        assert {batch["n"][0].as_py() for batch in batches} == {batch_size}
        assert {batch.num_rows for batch in batches} == {batch_size}
        assert len(batches) == TOTAL // batch_size


@pytest.mark.parametrize(("zone", "hours"), [("+02:00", -2), ("America/New_York", 5)])
def test_the_time_zone_reaches_the_tasks(over_parts: Session, zone: str, hours: int) -> None:
    """Which instant a text without a zone means depends on the session's zone."""
    over_parts.config["datafusion.execution.time_zone"] = zone
    midnight = "((2000 + 0 * k)::varchar || '-01-01T00:00:00')::timestamptz"
    sql = f"select date_part('epoch', {midnight}) as e, count(*) as n from t group by 1"
    assert over_parts.sql(sql).to_pylist() == [{"e": 946684800.0 + hours * 3600, "n": TOTAL}]
    assert_distributed_eq(over_parts, sql)


def test_slots_bound_the_tasks_that_run_at_once(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED | {SLOTS: 1, "sparkfusion.merge_small_partitions": False})
    session.register_parquet("t", write_parts(tmp_path))
    events = record(session)
    session.sql("select k, count(*) from t group by k").collect()
    assert len([event for event in events if isinstance(event, TaskStarted)]) > 1


@pytest.mark.parametrize("value", ['"s"', "'s'", "s", '"s" -- a comment'])
def test_the_default_schema_may_be_quoted(over_parts: Session, value: str) -> None:
    over_parts.sql("create schema s")
    over_parts.sql("create view s.q as select k, v from datafusion.public.t")
    over_parts.sql(f"set datafusion.catalog.default_schema = {value}")
    assert over_parts.config["datafusion.catalog.default_schema"] == "s"
    small = over_parts.sql("select k, count(*) as n from q group by k")
    assert sum(over_parts.sql("select n from $small", small=small).to_pydict()["n"]) == TOTAL
    assert over_parts.sql("show tables").to_pydict()["table_name"].count("q") == 1
    assert not [name for name in over_parts.context.catalog().schema("s").names() if name != "q"]


@NO_TASK
@pytest.mark.parametrize(
    ("value", "shown"),
    [("'it''s'", "it's"), ('"a""b"', 'a"b'), ("'a;b' ;", "a;b"), ("'--no' -- yes", "--no"), ("/* c */ plain", "plain")],
)
def test_values_are_unquoted_as_datafusion_does(session: Session, value: str, shown: str) -> None:
    session.sql(f"set sparkfusion.store_dir = {value}")
    assert session.config["sparkfusion.store_dir"] == shown


@NO_TASK
@pytest.mark.parametrize("name", ["datafusion.sql_parser.default_null_ordering", "sparkfusion.store_dir"])
def test_null_is_no_value(session: Session, name: str) -> None:
    before = session.config[name]
    with pytest.raises(UserError, match=f"cannot set {name} to NULL"):
        session.sql(f"set {name} = null")
    assert session.config[name] == before


def test_the_information_schema_may_be_off(over_parts: Session) -> None:
    name = "datafusion.catalog.information_schema"
    over_parts.config[BATCH_SIZE] = 50
    over_parts.sql(f"set {name} = false")
    assert over_parts.config[name] == "false"
    assert over_parts.config[BATCH_SIZE] == "50"
    assert over_parts.sql(f"show {BATCH_SIZE}").to_pydict()["value"] == ["50"]
    assert name in over_parts.sql("show all").to_pydict()["name"]
    with pytest.raises(UserError, match="information_schema"):
        over_parts.sql("show tables").collect()
    with pytest.raises(UserError, match="df_settings"):
        over_parts.sql("select * from information_schema.df_settings").collect()
    assert_distributed_eq(over_parts, "select k, count(*) as n from t group by k")
    over_parts.sql("set datafusion.execution.batch_size = 125")
    assert over_parts.config[BATCH_SIZE] == "125"
    over_parts.sql(f"reset {name}")
    assert over_parts.config[name] == "true"
    assert "t" in over_parts.sql("show tables").to_pydict()["table_name"]


@NO_TASK
@pytest.mark.parametrize(
    "query",
    [
        "select name, value from information_schema.df_settings where name like 'sparkfusion.%'",
        "select s.name, s.value from information_schema.df_settings as s where s.name like 'sparkfusion.%'",
        "select df_settings.name, value from INFORMATION_SCHEMA.df_settings where name like 'sparkfusion.%'",
        "with a as (select * from datafusion.information_schema.df_settings) "
        "select name, value from a where name like 'sparkfusion.%' -- information_schema.df_settings",
    ],
)
def test_df_settings_lists_ours(session: Session, query: str) -> None:
    session.config[SLOTS] = 5
    found = session.sql(query).to_pylist()
    assert {"name": SLOTS, "value": "5"} in found
    assert len(found) == len(SETTINGS)
    assert session.sql(query.replace("sparkfusion.%", BATCH_SIZE)).to_pylist() == [
        {"name": BATCH_SIZE, "value": session.config[BATCH_SIZE]}
    ]
    assert session.sql("show tables").to_pydict()["table_schema"] == ["information_schema"] * 7


def test_options_of_the_runtime_leave_queries_and_writes_alone(over_parts: Session, tmp_path: Path) -> None:
    name = "datafusion.runtime.memory_limit"
    for statement in (f"set {name} = '1G'", f"reset {name}"):
        over_parts.sql(statement)
        assert over_parts.sql("select k, v from t").write_parquet(tmp_path / "out.parquet") == TOTAL
    assert_distributed_eq(over_parts, "select k, count(*) as n from t group by k")


@NO_TASK
@pytest.mark.parametrize("name", [BATCH_SIZE, SLOTS])
def test_show_verbose_tells_what_a_setting_means(session: Session, name: str) -> None:
    (shown,) = session.sql(f"show {name} verbose").to_pylist()
    assert shown["name"] == name
    assert len(shown["description"]) > 20
    assert shown in session.sql("show all verbose").to_pylist()


@NO_TASK
def test_show_of_an_option_without_a_value_and_of_no_option(session: Session) -> None:
    unset = "datafusion.execution.time_zone"
    assert session.sql(f"show {unset}").to_pylist() == [{"name": unset, "value": None}]
    for name in ("datafusion.nothing", "sparkfusion.nothing"):
        with pytest.raises(UserError, match=f"unknown setting '{name}'"):
            session.sql(f"show {name}")


@NO_TASK
def test_set_of_the_time_zone(session: Session) -> None:
    session.sql("SET TIME ZONE = 'Europe/Vienna'")
    assert session.config["datafusion.execution.time_zone"] == "Europe/Vienna"
