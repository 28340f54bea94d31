"""Arguments of `register_parquet`, `read_csv` and the like, read and changed in the same way for every format."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from datafusion.options import CsvReadOptions

_PARTITION_ARGUMENTS = {"read_arrow": "file_partition_cols", "read_avro": "file_partition_cols"}
_CSV_ENDING = ".csv"


class FileArguments:
    """Arguments of any of these methods, by one name each: as arguments, or as attributes of CSV's options."""

    def __init__(self, method: str, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self._options = arguments.get("options")
        self._partition_argument = _PARTITION_ARGUMENTS.get(method, "table_partition_cols")

    def get(self, name: str) -> Any:
        return getattr(self._options, name) if self._options is not None else self.arguments.get(name)

    def put(self, name: str, value: Any) -> None:
        if self._options is not None:
            setattr(self._options, name, value)
        else:
            self.arguments[name] = value

    @property
    def extension(self) -> str | None:
        """The extension that the user gave. In CSV's options a default cannot be distinguished from a given value."""
        found: str | None = self.get("file_extension")
        return None if self._options is not None and found == _CSV_ENDING else found

    @property
    def partitions(self) -> list[tuple[str, Any]] | None:
        return self.get(self._partition_argument)  # type: ignore[no-any-return]

    def set_partitions(self, columns: list[tuple[str, pa.DataType]]) -> None:
        self.put(self._partition_argument, columns)

    def drop_from_schema(self, names: set[str]) -> None:
        schema = self.get("schema")
        if schema is not None and names & set(schema.names):
            self.put("schema", pa.schema([each for each in schema if each.name not in names]))


def with_csv_options(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the arguments. Those of CSV become an options object, because `register_csv` accepts more that way."""
    arguments = dict(given)
    if isinstance(arguments.get("options"), CsvReadOptions):
        arguments["options"] = copy.copy(arguments["options"])
    elif method.endswith("_csv"):
        own = {name: arguments.pop(name) for name in list(arguments) if name not in ("name", "path", "object_store")}
        own.pop("options", None)
        own["file_compression_type"] = own.get("file_compression_type") or ""
        arguments["options"] = CsvReadOptions(**own)
    return arguments
