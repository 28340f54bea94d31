"""Messages: a JSON head of plain values, and some blobs. Decoding runs no code and checks every value."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

from sparkfusion.errors import ProtocolError

SMALL_MESSAGE = 64 * 1024
"""The limit for messages that hold only a few values."""

_LENGTH = struct.Struct("<I")
_MOST_BLOBS = 16
V = TypeVar("V")


def pack(kind: str, fields: Mapping[str, Any] | None = None, *blobs: bytes | memoryview) -> bytes:
    """A message as bytes: the length of the head, the head, then the blobs, whose sizes are in the head."""
    head = {"kind": kind, "fields": dict(fields or {}), "blobs": [len(blob) for blob in blobs]}
    encoded = json.dumps(head, separators=(",", ":"), allow_nan=False).encode()
    return b"".join((_LENGTH.pack(len(encoded)), encoded, *blobs))


def unpack(data: bytes | memoryview, limit: int) -> tuple[str, Fields, list[memoryview]]:
    """The kind, the fields and the blobs of a message of at most `limit` bytes.

    >>> kind, fields, blobs = unpack(pack("hello", {"name": "x"}, b"12"), 100)
    >>> kind, fields.text("name"), bytes(blobs[0])
    ('hello', 'x', b'12')
    """
    view = memoryview(data)
    if len(view) > limit:
        raise ProtocolError(f"a message of {len(view):,} bytes is over the limit of {limit:,}")
    if len(view) < _LENGTH.size:
        raise ProtocolError("a message is cut short")
    (length,) = _LENGTH.unpack_from(view)
    start = _LENGTH.size + length
    if start > len(view):
        raise ProtocolError("a message is cut short")
    try:
        head = json.loads(bytes(view[_LENGTH.size : start]))
    except (ValueError, RecursionError):
        raise ProtocolError("a message has no readable head") from None
    fields = Fields(head)
    kind, sizes = fields.text("kind"), fields.integers("blobs")
    if len(sizes) > _MOST_BLOBS or any(size < 0 for size in sizes) or start + sum(sizes) != len(view):
        raise ProtocolError("the message is malformed: number or length of its parts is wrong")
    blobs = []
    for size in sizes:
        blobs.append(view[start : start + size])
        start += size
    return kind, fields.part("fields"), blobs


class Fields:
    """The values of a message. Each is read with the type that it must have."""

    def __init__(self, values: object) -> None:
        if not isinstance(values, dict):
            raise ProtocolError("a part of a message is not a set of fields")
        self._values: dict[str, Any] = values

    def text(self, name: str) -> str:
        return self._of(name, str)

    def integer(self, name: str) -> int:
        return self._of(name, int)

    def number(self, name: str) -> float:
        value = self._values.get(name)
        return float(value) if type(value) is int else self._of(name, float)

    def flag(self, name: str) -> bool:
        return self._of(name, bool)

    def maybe_text(self, name: str) -> str | None:
        return None if self._values.get(name) is None else self.text(name)

    def maybe_integer(self, name: str) -> int | None:
        return None if self._values.get(name) is None else self.integer(name)

    def maybe_number(self, name: str) -> float | None:
        return None if self._values.get(name) is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        return self._each(name, str)

    def integers(self, name: str) -> tuple[int, ...]:
        return self._each(name, int)

    def lists(self, name: str) -> list[tuple[int, ...]]:
        return [Fields({name: each})._each(name, int) for each in self._of(name, list)]

    def pairs(self, name: str) -> list[tuple[str, int]]:
        """Texts, each with a number."""
        values = self._of(name, list)
        if not all(type(each) is list and [type(part) for part in each] == [str, int] for each in values):
            raise ProtocolError(f"field {name!r} of a message must contain pairs of a string and a number")
        return [(text, number) for text, number in values]

    def mapping(self, name: str) -> dict[str, str]:
        return self.part(name).texts_by_name()

    def texts_by_name(self) -> dict[str, str]:
        """All values, which have to be texts."""
        if not all(type(value) is str for value in self._values.values()):
            raise ProtocolError("a part of a message must map strings to strings")
        return self._values

    def part(self, name: str) -> Fields:
        return Fields(self._values.get(name))

    def maybe_part(self, name: str) -> Fields | None:
        return None if self._values.get(name) is None else self.part(name)

    def parts(self, name: str) -> list[Fields]:
        return [Fields(each) for each in self._of(name, list)]

    def each(self, name: str, made: Callable[..., V]) -> tuple[V, ...]:
        return tuple(part.read(made) for part in self.parts(name))

    def read(self, made: Callable[..., V], **given: object) -> V:
        """A dataclass. Its fields are read as their types say, except those that are given."""
        types = _types_of(made)
        return made(**given, **{name: _READERS[types[name]](self, name) for name in types if name not in given})

    def _of(self, name: str, wanted: type[V]) -> V:
        value = self._values.get(name)
        if type(value) is not wanted:
            raise ProtocolError(f"field {name!r} of a message is a {type(value).__name__}, not a {wanted.__name__}")
        return value

    def _each(self, name: str, wanted: type[V]) -> tuple[V, ...]:
        values: Sequence[Any] = self._of(name, list)
        if not all(type(value) is wanted for value in values):
            raise ProtocolError(f"field {name!r} of a message must contain only {wanted.__name__}")
        return tuple(values)


_types_of = cache(get_type_hints)
_READERS: dict[Any, Callable[[Fields, str], Any]] = {
    str: Fields.text,
    int: Fields.integer,
    float: Fields.number,
    bool: Fields.flag,
    str | None: Fields.maybe_text,
    int | None: Fields.maybe_integer,
    float | None: Fields.maybe_number,
    tuple[str, ...]: Fields.texts,
    Mapping[str, str]: Fields.mapping,
}
