"""One random case: tables, settings and a statement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz.errors import failing
from tests.fuzz.expressions import condition
from tests.fuzz.queries import query, top_query
from tests.fuzz.scope import Pen
from tests.fuzz.selects import items_of, select_list
from tests.fuzz.sources import source
from tests.fuzz.tables import Registry, Table, tables

Settings = tuple[tuple[str, object], ...]

# The first value is DataFusion's default, is not written out, and is what shrinking aims at.
_SETTINGS: dict[str, tuple[object, ...]] = {
    "datafusion.execution.batch_size": (8192, 8192, 16, 3),
    "datafusion.execution.collect_statistics": (True, True, False),
    "datafusion.execution.parquet.pushdown_filters": (False, False, True),
    "datafusion.execution.parquet.schema_force_view_types": (True, True, False),
    "datafusion.execution.skip_partial_aggregation_probe_rows_threshold": (100_000, 100_000, 0),
    "datafusion.execution.time_zone": ("+00:00", "+00:00", "+02:00"),
    "datafusion.optimizer.hash_join_single_partition_threshold": (1_048_576, 1_048_576, 0),
    "datafusion.optimizer.prefer_existing_sort": (False, False, False, True),
    "datafusion.optimizer.prefer_existing_union": (False, False, False, True),
    "datafusion.optimizer.prefer_hash_join": (True, True, True, False),
    "datafusion.optimizer.repartition_aggregations": (True, True, True, False),
    "sparkfusion.adaptive_broadcast_bytes": (67_108_864, -1, 0),
    "sparkfusion.key_set_bytes": (33_554_432, -1, -1, 0),
    "sparkfusion.shared_aggregate_bytes": (67_108_864, -1, -1, 0),
    "sparkfusion.skip_empty_stages": (True, False),
    "sparkfusion.swap_factor": (4, -1, -1, 0),
    "sparkfusion.skew_bytes": (67_108_864, -1, -1, 0),
    "sparkfusion.merge_small_partitions": (True, False),
    "sparkfusion.memory_table_bytes": (1_048_576, 1_048_576, 1),
    "sparkfusion.store_memory_bytes": (-1, -1, 0),
    "sparkfusion.frame_compression": ("none", "none", "lz4"),
}

_PROGRAM = '''
# PYTHONPATH=. python this_file.py
import datetime
import zoneinfo
from decimal import Decimal
import pyarrow as pa
from pandas import Timestamp
from tests.fuzz.case import Case
from tests.fuzz.check import check_case
from tests.fuzz.kinds import Family
from tests.fuzz.tables import Column, Table

tables = (
{tables},
)
sql = """{sql}"""
settings = {settings!r}
print(check_case(Case(tables, sql, settings)).describe())
'''


@dataclass(frozen=True)
class Case:
    """Tables, a statement over them and the session's settings; `features` says what the statement is made of."""

    tables: tuple[Table, ...]
    sql: str
    settings: Settings
    features: frozenset[str] = frozenset()

    def register(self, registry: Registry, directory: Path) -> None:
        for table in self.tables:
            table.register(registry, directory)

    def program(self) -> str:
        """Python that runs the case again, from the repository's root. It holds all data."""
        made = ",\n".join(table.source() for table in self.tables if table.name in self.sql)
        return _PROGRAM.format(tables=made, sql=self.sql, settings=self.settings)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any case. One in twenty fails when it runs; one in twenty has a LIMIT whose rows may be any."""
    made = tuple(draw(tables(f"t{number}")) for number in range(draw(st.integers(1, 3))))
    pen = Pen(draw, made)
    kind = draw(st.integers(1, 20))
    sql = failing(pen) if kind == 20 else _any_rows(pen) if kind == 19 else top_query(pen)
    return Case(made, sql, draw(_settings()), frozenset(pen.features))


@st.composite
def _settings(draw: st.DrawFn) -> Settings:
    partitions = draw(st.sampled_from((2, 3, 2, 3, 7, 2, 3, 7, 1)))
    chosen: list[tuple[str, object]] = [("datafusion.execution.target_partitions", partitions)]
    for name, values in _SETTINGS.items():
        value = draw(st.sampled_from(values))
        if value != values[0]:
            chosen.append((name, value))
    return tuple(chosen)


def _any_rows(pen: Pen) -> str:
    """A LIMIT without ORDER BY: `verify` checks the count, and that the rows are among those that may come."""
    pen.note("limit without order")
    read = source(pen, 1, query)
    filtered = f" WHERE {condition(pen, read.fields)}" if pen.chance(50) else ""
    offset = f" OFFSET {pen.number(1, 5)}" if pen.chance(30) else ""
    items = select_list(items_of(pen, read))
    return f"SELECT {items} FROM {read.sql}{filtered} LIMIT {pen.pick((3, 1, 10, 50))}{offset}"
