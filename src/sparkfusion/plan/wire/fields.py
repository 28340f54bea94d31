"""The fields of a protobuf message, read from its bytes: numbers and offsets. Nothing is decoded, and nothing is
recursive."""

from __future__ import annotations

from collections.abc import Iterator

from sparkfusion.errors import WireFormatError

BYTES = 2
"""The wire type of strings, bytes, messages and packed numbers."""
_ONE_BYTE = 128  # numbers below it are one byte long
_SIZES = {1: 8, 5: 4}
_MOST_KEY = (1 << 32) - 1


RawField = tuple[int, int, int, int]
"""A field: its number, its wire type, and where its content begins and ends."""


def raw_fields(data: bytes, at: int, end: int) -> Iterator[RawField]:
    """The fields of the message between two offsets.

    >>> list(raw_fields(bytes([10, 2, 104, 105, 16, 7]), 0, 6))
    [(1, 2, 2, 4), (2, 0, 5, 6)]
    """
    while at < end:
        key = data[at]
        if key < _ONE_BYTE:
            at += 1
        else:
            key, at = _varint(data, at, end)
        wire = key & 7
        if wire == BYTES:
            size, at = _varint(data, at, end)
        elif wire == 0:
            size = _varint(data, at, end)[1] - at
        else:
            size = _SIZES.get(wire, end)
        if size > end - at or not 8 <= key <= _MOST_KEY:
            raise WireFormatError("these bytes are not a DataFusion plan: a field does not end where its message does")
        yield key >> 3, wire, at, at + size
        at += size


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at an offset, and the offset after it."""
    if at < end and data[at] < _ONE_BYTE:
        return data[at], at + 1
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < _ONE_BYTE:
            return value, at
        shift += 7
    raise WireFormatError("these bytes are not a DataFusion plan: a number does not end")
