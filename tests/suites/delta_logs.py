"""Delta tables as other writers than deltalake leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

VECTOR = {  # the example of the protocol's description: rows 3, 4, 7, 11, 18 and 29
    "storageType": "i",
    "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 40,
    "cardinality": 6,
}


def write_log(
    path: Path, *, features: list[str] | None, add: dict[str, Any] | None = None, settings: dict[str, str] | None = None
) -> None:
    """A Delta table of one file, as another writer would leave it."""
    pq.write_table(pa.table({"v": list(range(40))}), path / "0.parquet")
    numbers = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "v"}
    field = {"name": "v", "type": "long", "nullable": True, "metadata": mapped if settings else {}}
    size = (path / "0.parquet").stat().st_size
    file = {"path": "0.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    metadata = {
        "id": "af23c9d7-fff1-4a5a-a2c8-55c59bd782aa",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": settings or {},
    }
    plain = {"minReaderVersion": 2, "minWriterVersion": 5}
    lines = [
        {"protocol": numbers if features else plain},
        {"metaData": metadata},
        {"add": {**file, "stats": json.dumps({"numRecords": 40}), **(add or {})}},
    ]
    (path / "_delta_log").mkdir()
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
