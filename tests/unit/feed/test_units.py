"""Work units travel as they are."""

from __future__ import annotations

import datetime
import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sparkfusion import FileUnit, UserError, WorkUnit
from sparkfusion.feed.unit_codec import encode_unit, pack, unpack

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


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FileUnit("x", -1), "size of file 'x'"),
        (lambda: FileUnit("x", 1 << 63), "size of file 'x'"),
        (lambda: FileUnit("x", 1.5), "size of file 'x'"),  # type: ignore[arg-type]
        (lambda: FileUnit("x", 9, range=(5, 3)), "start first"),
        (lambda: FileUnit("x", 9, range=(-1, 3)), "start first"),
        (lambda: FileUnit("x", 9, range=(1,)), "start first"),  # type: ignore[arg-type]
        (lambda: FileUnit("x", 9, range=7), "start first"),  # type: ignore[arg-type]
        (lambda: FileUnit("x", 9, range=(0, 10)), "ends after the end of the file, which has 9 bytes"),
        (lambda: FileUnit(""), "path"),
        (lambda: FileUnit("a\nb"), "control character"),
        (lambda: FileUnit("a\x7fb"), "control character"),
        (lambda: FileUnit("a\udcff"), "not valid UTF-8"),
        (lambda: FileUnit("x", weight=math.inf), "weight"),
        (lambda: WorkUnit(1, weight=math.nan), "weight"),
    ],
)
def test_units_that_cannot_be_are_refused(make: Callable[[], WorkUnit], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


@pytest.mark.parametrize(
    "unit",
    [
        {"f": "/x", "u": ""},
        {"f": "/x", "j": 1},
        {"j": 1, "p": ""},
        {"b": "", "j": 1},
        {"u": "", "w": 1},
        {"w": 1},
        {},
        {"f": 1},
        {"f": "/x", "s": "1"},
        {"f": "/x", "s": -1},
        {"f": "/x", "r": [1]},
        {"f": "/x", "r": [2, 1]},
        {"f": "/x", "r": {"0": 1}},
        {"f": "/x", "v": []},
        {"f": "/x", "v": {"p": 1}},
        {"f": "/x", "v": {"p": {"b": 1}}},
        {"b": 1},
        {"b": "?"},
        {"j": 1, "w": "1"},
        {"j": 1, "w": 0},
        [],
        1,
        None,
    ],
)
def test_units_of_a_wrong_shape_are_no_units(unit: Any) -> None:
    with pytest.raises(UserError):
        unpack(json.dumps([unit]).encode(), trust_python=False)


@pytest.mark.parametrize(
    "data", [b"", b"[", b"x", b"[" * 100_000, zlib.compress(b"{}"), zlib.compress(b"1"), b"[\xff]"]
)
def test_bytes_that_are_no_units(data: bytes) -> None:
    with pytest.raises(UserError, match="invalid work units"):
        unpack(data, trust_python=False)
