"""The range of the keys in the files of a key set."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.ids import SourceFile
from sparkfusion.plan.key_ranges import KeyRange

_NAMES = {
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.date32(): "date32",
}


def read_key_range(files: Iterable[SourceFile], column: int) -> KeyRange | None:
    """The smallest and the largest value of a column of frames; None if there is no value, or no range for its type."""
    bounds: list[int] = []
    name: str | None = None
    for file in files:
        with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
            name = _NAMES.get(reader.schema.field(column).type)
            if name is None:
                return None
            for index in range(reader.num_record_batches):
                bounds += _bounds(reader.get_batch(index).column(column))
    return KeyRange(min(bounds), max(bounds), name) if bounds and name is not None else None


def _bounds(keys: pa.Array) -> list[int]:
    numbers = keys.cast(pa.int32()) if pa.types.is_date32(keys.type) else keys
    found = pc.min_max(numbers)
    return [bound.as_py() for bound in (found["min"], found["max"]) if bound.is_valid]
