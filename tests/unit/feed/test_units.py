"""Work units travel as they are."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sparkfusion import FileUnit, UserError, WorkUnit
from sparkfusion.feed.units import encode_unit, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
PAYLOADS = PLAIN | st.binary() | st.tuples(PLAIN) | st.dates() | st.sets(st.integers(), max_size=3)
UNITS = st.builds(WorkUnit, PAYLOADS, weight=st.floats(0.001, 1e9))


def there_and_back(*units: WorkUnit, trust_python: bool = True) -> list[WorkUnit]:
    return list(unpack(pack([encode_unit(unit) for unit in units]), trust_python=trust_python))


@settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=tuple(HealthCheck),
)
@given(st.lists(UNITS, max_size=4))
def test_any_payload_comes_back_with_its_type(units: list[WorkUnit]) -> None:
    found = there_and_back(*units)
    assert found == units
    assert [_types(unit.payload) for unit in found] == [_types(unit.payload) for unit in units]


def _types(value: Any) -> Any:
    """1 and True and 1.0 are equal, and not the same."""
    if isinstance(value, dict):
        return {key: _types(each) for key, each in value.items()}
    return [_types(each) for each in value] if isinstance(value, list | tuple) else type(value)


@pytest.mark.parametrize("payload", [float("nan"), float("inf"), -0.0, 2**100, "\ud800", {1: 2}, {"a": (1,)}])
def test_payloads_that_text_could_change(payload: Any) -> None:
    (found,) = there_and_back(WorkUnit(payload))
    assert repr(found.payload) == repr(payload)
    assert not isinstance(payload, float) or math.copysign(1, found.payload) == math.copysign(1, payload)


@pytest.mark.parametrize(
    "unit",
    [
        FileUnit("/a b/ü%#?.parquet"),
        FileUnit("s3://bucket/x", 0),
        FileUnit("/x", 10**15, range=(5, 10**14)),
        FileUnit("/x", partition_values={"p": "1", "q": None, "": ""}),
    ],
)
def test_files_come_back(unit: FileUnit) -> None:
    assert there_and_back(unit, trust_python=False) == [unit]


def test_values_of_files_travel_as_texts() -> None:
    day = datetime.date(2024, 1, 2)
    (found,) = there_and_back(FileUnit("/x", partition_values={"d": day, "n": 7, "none": None, "yes": True}))
    assert isinstance(found, FileUnit)
    assert found.partition_values == {"d": "2024-01-02", "n": "7", "none": None, "yes": "True"}


def test_a_files_weight_is_what_is_read_of_it() -> None:
    assert FileUnit("x").weight == 1
    assert FileUnit("x", 0).weight == 1
    assert FileUnit("x", 500).weight == 500
    assert FileUnit("x", 500, range=(100, 150)).weight == 50
    assert FileUnit("x", 500, weight=3).weight == 3


def test_what_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be pickled"):
        encode_unit(WorkUnit(lambda: 1))


def test_a_million_units_are_small() -> None:
    """A ledger keeps all of them until the query ends."""
    packed = pack(
        encode_unit(FileUnit(f"s3://bucket/events/day=2024-01-01/{n:08}.parquet", 1000 + n)) for n in range(256)
    )
    assert len(packed) / 256 < 30


def test_a_relative_path_is_one_of_the_coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    packed = pack([encode_unit(FileUnit("data/a.parquet")), encode_unit(FileUnit("s3://bucket/a.parquet"))])
    monkeypatch.chdir("/")
    paths = [unit.path for unit in unpack(packed, trust_python=False) if isinstance(unit, FileUnit)]
    assert paths == [f"{tmp_path}/data/a.parquet", "s3://bucket/a.parquet"]
