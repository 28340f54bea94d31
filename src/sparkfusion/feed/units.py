"""Work units: small descriptions of leaf work, and how they travel."""

from __future__ import annotations

import base64
import json
import math
import pickle
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from sparkfusion.errors import UserError

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_COMPRESSED_BYTES = 1024 * 1024
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class WorkUnit:
    """Something to read: a page, an offset, a key. The feed's reader turns it into rows, on a worker.

    Attributes:
        payload: whatever the reader needs: bytes, plain data, or anything that can be pickled.
        weight: how much work it is, compared to the other units of the feed.
        hosts: names of machines that reach the data faster; taken as a wish.
    """

    payload: Any = None
    weight: float = field(default=1.0, kw_only=True)
    hosts: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise UserError(f"a work unit's weight must be more than 0, not {self.weight!r}")
        object.__setattr__(self, "hosts", tuple(self.hosts))


@dataclass(frozen=True)
class FileUnit(WorkUnit):
    """A file, or a part of one, that DataFusion scans natively.

    Attributes:
        path: a path or URL.
        size: its bytes, if known; DataFusion needs the size, so the worker asks for it where it is not.
        range: (start, end) in bytes: the row groups or lines that begin there.
        partition_values: values of the feed's partition columns, for all rows of the file.
    """

    path: str = ""
    size: int | None = None
    range: tuple[int, int] | None = None
    partition_values: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        path: str | PathLike[str],
        size: int | None = None,
        *,
        range: tuple[int, int] | None = None,
        partition_values: Mapping[str, Any] | None = None,
        weight: float | None = None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        read = size if range is None else range[1] - range[0]
        fields = {
            "payload": None,
            "path": str(path),
            "size": size,
            "range": tuple(range) if range is not None else None,
            "partition_values": dict(partition_values or {}),
            "weight": weight if weight is not None else max(1.0, float(read or 0)),
            "hosts": hosts,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self.__post_init__()


def encode_unit(unit: WorkUnit) -> str:
    """One unit as text. Plain data stays readable without unpickling anything."""
    return _ENCODER.encode(_plain(unit))


def pack(encoded: Iterable[str]) -> bytes:
    """Encoded units as compact bytes: a ledger keeps a million of them. Large payloads stay as they are."""
    text = f"[{','.join(encoded)}]".encode()
    return zlib.compress(text, 1) if len(text) <= _COMPRESSED_BYTES else text


def unpack(data: bytes, *, trust_python: bool) -> tuple[WorkUnit, ...]:
    """The units again. Payloads that had to be pickled are refused unless Python objects are trusted (D10)."""
    text = zlib.decompress(data) if is_compressed(data) else data
    return tuple(_unit(each, trust_python=trust_python) for each in json.loads(text))


def is_compressed(data: bytes) -> bool:
    return not data.startswith(b"[")


def _plain(unit: WorkUnit) -> dict[str, Any]:
    if type(unit) not in (WorkUnit, FileUnit):
        return {"u": base64.b64encode(_pickled(unit)).decode()}
    if isinstance(unit, FileUnit):
        made: dict[str, Any] = {"f": _absolute(unit.path)}
        made |= {"s": unit.size} if unit.size is not None else {}
        made |= {"r": unit.range} if unit.range is not None else {}
        if unit.partition_values:
            made["v"] = {name: _plain_value(value) for name, value in unit.partition_values.items()}
        return made
    if isinstance(unit.payload, bytes):
        made = {"b": base64.b64encode(unit.payload).decode()}
    elif _is_plain(unit.payload):
        made = {"j": unit.payload}
    else:
        made = {"p": base64.b64encode(_pickled(unit.payload)).decode()}
    return made | ({"w": unit.weight} if unit.weight != 1.0 else {})


def _absolute(path: str) -> str:
    """A path means what it means here, also on a worker that is elsewhere. URLs stay as they are."""
    return path if "://" in path else str(Path(path).absolute())


def _plain_value(value: Any) -> Any:
    """Of a partition column: text, which the column's type is made of, or bytes."""
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    return None if value is None else str(value)


def _value(plain: Any) -> Any:
    return base64.b64decode(plain["b"]) if isinstance(plain, dict) else plain


def _unit(data: Mapping[str, Any], *, trust_python: bool) -> WorkUnit:
    if "f" in data:
        span = data.get("r")
        return FileUnit(
            data["f"],
            data.get("s"),
            range=(span[0], span[1]) if span is not None else None,
            partition_values={name: _value(plain) for name, plain in data.get("v", {}).items()},
        )
    weight = data.get("w", 1.0)
    if "b" in data:
        return WorkUnit(base64.b64decode(data["b"]), weight=weight)
    if "j" in data:
        return WorkUnit(data["j"], weight=weight)
    if not trust_python:
        raise UserError(
            "a work unit's payload is a Python object, which this worker does not take",
            hint="use bytes or plain data as payload, or start the workers with the switch that trusts Python",
        )
    if "u" in data:
        unit: WorkUnit = pickle.loads(base64.b64decode(data["u"]))
        return unit
    return WorkUnit(pickle.loads(base64.b64decode(data["p"])), weight=weight)


def _is_plain(value: Any) -> bool:
    """Whether JSON gives the same value back, types included."""
    if type(value) in _PLAIN:
        return not isinstance(value, float) or math.isfinite(value)
    if type(value) is list:
        return all(_is_plain(each) for each in value)
    if type(value) is dict:
        return all(type(key) is str and _is_plain(each) for key, each in value.items())
    return False


def _pickled(payload: Any) -> bytes:
    try:
        return pickle.dumps(payload)
    except Exception as error:
        raise UserError(f"a work unit's payload cannot be pickled: {error}") from error
