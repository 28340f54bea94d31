"""The keys in the files of a key set."""

from __future__ import annotations

from collections.abc import Iterable

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
    chunks: list[pa.Array] = []
    for file in files:
        with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
            if reader.schema.field(column).type not in _NAMES:
                return None
            chunks += [reader.get_batch(index).column(column) for index in range(reader.num_record_batches)]
    if not any(len(chunk) > chunk.null_count for chunk in chunks):
        return None
    keys = pa.chunked_array(chunks)
    numbers = keys.cast(pa.int32()) if pa.types.is_date32(keys.type) else keys
    found = pc.min_max(numbers)
    values = pc.unique(numbers.drop_null()).to_pylist() if len(numbers) <= MOST_FILTER_KEYS else ()
    return Keys(found["min"].as_py(), found["max"].as_py(), _NAMES[keys.type], tuple(values))
