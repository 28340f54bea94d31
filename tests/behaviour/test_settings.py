"""Settings: SET, SHOW, RESET and session.config are one thing, for DataFusion's options and for ours."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.config import SETTINGS
from sparkfusion.observe.events import TaskStarted
from tests.behaviour.parts import DISTRIBUTED, assert_usable, record, rows_of, single_node, write_parts
from tests.conftest import Connect

BATCH_SIZE = "datafusion.execution.batch_size"
SLOTS = "sparkfusion.slots"


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect()


@pytest.mark.parametrize("name", [BATCH_SIZE, SLOTS])
def test_set_show_and_config_agree(session: Session, name: str) -> None:
    session.sql(f"SET {name} = 17")
    assert session.config[name] == "17"
    assert session.sql(f"show {name}").to_pylist() == [{"name": name, "value": "17"}]
    session.config[name] = 18
    assert session.sql(f"SHOW {name};").to_pydict()["value"] == ["18"]
    session.sql(f"set {name} to '19';")
    assert session.config[name] == "19"


@pytest.mark.parametrize("name", [BATCH_SIZE, SLOTS])
def test_reset_brings_the_default_back(session: Session, name: str) -> None:
    default = session.config[name]
    session.config[name] = 17
    session.sql(f"RESET {name}")
    assert session.config[name] == default
    session.config[name] = 17
    del session.config[name]
    assert session.config[name] == default


def test_show_all_lists_everything(session: Session) -> None:
    shown = session.sql("show all").to_pydict()["name"]
    assert {setting.name for setting in SETTINGS} <= set(shown)
    assert BATCH_SIZE in shown
    assert set(session.config) == set(shown)
    assert len(session.config) == len(shown)


def test_settings_of_connect_take_effect(connect: Connect) -> None:
    session = connect({SLOTS: 3, BATCH_SIZE: 99, "datafusion.execution.time_zone": "Europe/Vienna"})
    assert (session.config[SLOTS], session.config[BATCH_SIZE]) == ("3", "99")
    assert session.config["datafusion.execution.time_zone"] == "Europe/Vienna"


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


def test_a_misspelt_setting_gets_a_suggestion(session: Session) -> None:
    with pytest.raises(UserError, match=r"did you mean 'sparkfusion\.slots'"):
        session.config["sparkfusion.slot"] = 1


def test_config_is_a_mapping(session: Session) -> None:
    assert SLOTS in session.config
    assert "sparkfusion.nothing" not in session.config
    assert "nothing" not in session.config
    assert session.config.get("sparkfusion.nothing", "none") == "none"


def test_settings_reach_the_tasks(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED | {BATCH_SIZE: 10})
    session.register_parquet("t", write_parts(tmp_path))
    assert max(batch.num_rows for batch in session.sql("select v + 1 as w from t").stream()) <= 10
    session.config["datafusion.execution.time_zone"] = "+05:00"
    query = "select k, max(cast(to_timestamp(v) as varchar)) as at from t where cast(now() as varchar) > '2' group by k"
    frame = session.sql(query)
    assert rows_of(frame.collect()) == rows_of(single_node(frame))


def test_slots_bound_the_tasks_that_run_at_once(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED | {SLOTS: 1, "sparkfusion.merge_small_partitions": False})
    session.register_parquet("t", write_parts(tmp_path))
    events = record(session)
    session.sql("select k, count(*) from t group by k").collect()
    assert len([event for event in events if isinstance(event, TaskStarted)]) > 1


def test_the_information_schema_cannot_be_switched_off(connect: Connect) -> None:
    session = connect(DISTRIBUTED)
    with pytest.raises(UserError, match="must stay true"):
        session.sql("set datafusion.catalog.information_schema = false")
    assert_usable(session)


def test_set_of_the_time_zone(session: Session) -> None:
    session.sql("SET TIME ZONE = 'Europe/Vienna'")
    assert session.config["datafusion.execution.time_zone"] == "Europe/Vienna"
