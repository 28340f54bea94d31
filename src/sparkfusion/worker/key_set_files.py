"""The keys in the files of a key set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.ids import SourceFile
from sparkfusion.plan.key_filters import Keys
from sparkfusion.plan.scan_statistics import MOST_FILTER_KEYS

_NAMES = {
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.date32(): "date32",
}


def read_keys(files: Iterable[SourceFile], column: int) -> Keys | None:
    """The values of a column of frames; None if there is no value, or if values of its type are not looked for."""
    bounds: list[int] = []
    values: set[int] = set()
    name = ""
    for keys in _read_column(files, column):
        if keys.type not in _NAMES:
            return None
        name = _NAMES[keys.type]
        numbers = keys.cast(pa.int32()) if pa.types.is_date32(keys.type) else keys
        found = pc.min_max(numbers)
        bounds += [bound.as_py() for bound in (found["min"], found["max"]) if bound.is_valid]
        if len(values) <= MOST_FILTER_KEYS:
            values.update(pc.unique(numbers.drop_null()).to_pylist())
    if not bounds:
        return None
    return Keys(min(bounds), max(bounds), name, tuple(sorted(values)) if len(values) <= MOST_FILTER_KEYS else ())


def _read_column(files: Iterable[SourceFile], column: int) -> Iterator[pa.Array]:
    for file in files:
        with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index).column(column)
