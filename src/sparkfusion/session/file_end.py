"""A file of which only the end is read, for readers that seek: a Parquet file's footer is at its end."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from sparkfusion.runner.base import CatalogFile

ReadEnd = Callable[[CatalogFile, int], bytes]
"""Returns the last bytes of a file, as many as asked for."""

_FIRST = 64 << 10  # most footers are smaller; pyarrow asks for as much at first


class FileEnd(io.RawIOBase):
    """A file that fetches its last bytes when they are read: once if the footer is small, else twice.

    >>> file = FileEnd(CatalogFile("s3://bucket/file", size=10), lambda file, count: b"0123456789"[-count:])
    >>> file.seek(-3, io.SEEK_END), file.read(2)
    (7, b'78')
    """

    def __init__(self, file: CatalogFile, read_end: ReadEnd) -> None:
        self._file = file
        self._read_end = read_end
        self._end = b""
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        needed = self._file.size - self._position
        if needed > len(self._end):
            self._end = self._read_end(self._file, min(self._file.size, max(needed, _FIRST)))
        start = len(self._end) - needed
        found = self._end[start : start + len(buffer)]
        buffer[: len(found)] = found
        self._position += len(found)
        return len(found)
