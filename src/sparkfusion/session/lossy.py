"""Tables with scan options that a plan's encoding loses; their queries run on one node (docs/traps.md#lost-options)."""

from __future__ import annotations

import re
from typing import Any

from datafusion.options import CsvReadOptions

from sparkfusion.session.external_statement import ExternalStatement

UNNAMED = "?table?"
"""What DataFusion calls the table of `read_csv` and its like."""

_CARRIED_CSV_OPTIONS = frozenset(
    {
        "has_header", "delimiter", "quote", "escape", "comment", "newlines_in_values", "schema",
        "schema_infer_max_records", "file_extension", "table_partition_cols", "truncated_rows",
    }
)  # fmt: skip
_CARRIED_IN_SQL = {"has_header", "delimiter", "quote", "escape", "comment", "newlines_in_values", "truncated_rows"}
_PLANNING_OPTIONS = {"schema_infer_max_rec"}
_PART = re.compile(r'"([^"]+)"|([^.]+)')


class LossyTables:
    """Names of tables, and what is lost. Only the last part of a name counts, which may refuse a query needlessly."""

    def __init__(self) -> None:
        self._lost: dict[str, str] = {}

    def add(self, table: str, lost: str | None) -> None:
        """Remember a new table; None means that nothing of it is lost."""
        if lost is not None:
            self._lost[_key(table)] = lost
        elif _key(table) != UNNAMED:
            self._lost.pop(_key(table), None)

    def lost_options_of(self, table: str) -> str | None:
        return self._lost.get(_key(table))


def lost_options(arguments: dict[str, Any]) -> str | None:
    """What would be lost of the arguments of `register_csv`, `read_json` and the like."""
    lost = ["file_compression_type"] if arguments.get("file_compression_type") is not None else []
    chosen = arguments.get("options")
    if isinstance(chosen, CsvReadOptions):
        default = vars(CsvReadOptions())
        lost += [n for n, v in vars(chosen).items() if n not in _CARRIED_CSV_OPTIONS and v != default.get(n)]
    return "option " + ", ".join(repr(name) for name in lost) if lost else None


def lost_in_statement(statement: ExternalStatement) -> str | None:
    """What would be lost of the OPTIONS of CREATE EXTERNAL TABLE over CSV or JSON.

    >>> from sparkfusion.session.external_statement import parse_external
    >>> text = "create external table t stored as csv location 'x' options (delimiter ')', 'format.null_regex' 'NA')"
    >>> lost_in_statement(parse_external(text))
    "option 'format.null_regex'"
    """
    carried = _PLANNING_OPTIONS | (_CARRIED_IN_SQL if statement.format == "csv" else set())
    names = [name for name, _ in statement.pairs() if name.lower().removeprefix("format.") not in carried]
    return "option " + ", ".join(map(repr, names)) if names and statement.format in ("csv", "json") else None


def _key(table: str) -> str:
    parts = [quoted or bare for quoted, bare in _PART.findall(table)]
    return (parts[-1] if parts else table).strip().lower()
