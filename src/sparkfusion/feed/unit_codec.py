"""Encode work units: as plain data if possible, otherwise pickled. Decoding checks every value."""

from __future__ import annotations

import base64
import json
import math
import pickle
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.feed.units import FileUnit, WorkUnit

_ENCODER = json.JSONEncoder(separators=(",", ":"))
_COMPRESSED_BYTES = 1024 * 1024
_PLAIN = (str, int, float, bool, type(None))
_FILE_KEYS = frozenset({"f", "s", "r", "v"})
_NO_UNITS = "invalid work units"


def encode_unit(unit: WorkUnit) -> str:
    """One unit as text. Plain data stays readable without unpickling anything."""
    return _ENCODER.encode(_plain(unit))


def pack(encoded: Iterable[str]) -> bytes:
    """Encoded units as compact bytes: a ledger keeps a million of them. Large payloads are not compressed."""
    text = f"[{','.join(encoded)}]".encode()
    return zlib.compress(text, 1) if len(text) <= _COMPRESSED_BYTES else text


def unpack(data: bytes, *, trust_python: bool) -> tuple[WorkUnit, ...]:
    """The units of packed bytes. Pickled payloads are refused unless Python objects are trusted."""
    try:
        found = json.loads(zlib.decompress(data) if is_compressed(data) else data)
    except (zlib.error, ValueError, RecursionError):
        raise UserError(_NO_UNITS) from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UserError(_NO_UNITS)
    return tuple(_unit(each, trust_python=trust_python) for each in found)


def is_compressed(data: bytes) -> bool:
    return not data.startswith(b"[")


def _plain(unit: WorkUnit) -> dict[str, Any]:
    if type(unit) not in (WorkUnit, FileUnit):
        return {"u": base64.b64encode(_pickle(unit)).decode()}
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
        made = {"p": base64.b64encode(_pickle(unit.payload)).decode()}
    return made | ({"w": unit.weight} if unit.weight != 1.0 else {})


def _absolute(path: str) -> str:
    """An absolute path, so that it means the same on a worker in another directory. URLs stay as they are."""
    return path if "://" in path else str(Path(path).absolute())


def _plain_value(value: Any) -> Any:
    """The value of a partition column for encoding: text, which is later cast to the column's type, or bytes."""
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    return None if value is None else str(value)


def _unit(data: Mapping[str, Any], *, trust_python: bool) -> WorkUnit:
    """Decode a unit. Each kind of unit has keys of its own, so its kind is never ambiguous."""
    if "f" in data:
        _check_keys(data, _FILE_KEYS)
        values = data.get("v", {})
        if not isinstance(values, dict) or not isinstance(data["f"], str):
            raise UserError(_NO_UNITS)
        partition_values = {name: _value(plain) for name, plain in values.items()}
        return FileUnit(data["f"], data.get("s"), range=data.get("r"), partition_values=partition_values)
    shape = next((key for key in ("b", "j", "u", "p") if key in data), "")
    _check_keys(data, {shape, "w"} if shape != "u" else {"u"})
    weight = data.get("w", 1.0)
    if shape == "b":
        return WorkUnit(_unpack(data["b"]), weight=weight)
    if shape == "j":
        return WorkUnit(data["j"], weight=weight)
    if not trust_python:
        raise UserError(
            "a work unit's payload is a Python object, which this worker does not accept",
            hint="use bytes or plain data as payload, or start the workers with --trust-python",
        )
    if shape == "u":
        unit: WorkUnit = pickle.loads(_unpack(data["u"]))
        return unit
    return WorkUnit(pickle.loads(_unpack(data["p"])), weight=weight)


def _check_keys(data: Mapping[str, Any], known: set[str] | frozenset[str]) -> None:
    if not data.keys() <= known:
        raise UserError(_NO_UNITS)


def _value(plain: Any) -> str | bytes | None:
    if isinstance(plain, dict) and plain.keys() == {"b"}:
        return _unpack(plain["b"])
    if plain is not None and not isinstance(plain, str):
        raise UserError(_NO_UNITS)
    return plain


def _unpack(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise UserError(_NO_UNITS) from None


def _is_plain(value: Any) -> bool:
    """Whether JSON gives the same value back, types included."""
    if type(value) in _PLAIN:
        return not isinstance(value, float) or math.isfinite(value)
    if type(value) is list:
        return all(_is_plain(each) for each in value)
    if type(value) is dict:
        return all(type(key) is str and _is_plain(each) for key, each in value.items())
    return False


def _pickle(payload: Any) -> bytes:
    try:
        return pickle.dumps(payload)
    except Exception as error:
        raise UserError(f"a work unit's payload cannot be pickled: {error}") from error
