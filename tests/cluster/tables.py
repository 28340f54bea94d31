"""Small tables in several files, queries over them, and their single-node answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq

from tests.behaviour.parts import TOTAL, write_parts

FUNCTIONS = ("mapped", "reduced", "last")
"""bigint → the same bigint. Tasks that call them can be watched and harmed."""

GROUPED = """
    select g, count(*) as n, reduced(sum(v)) as s
    from (select v % 40 as g, mapped(v) as v from t) group by g order by g
"""
COUNTED = "select g, count(*) as n, sum(v) as s from (select v % 40 as g, mapped(v) as v from t) group by g order by g"
GROUPED_TWICE = """
    select h, last(sum(n)) as n, sum(s) as s
    from (
        select g % 23 as h, n, s
        from (select g, count(*) as n, reduced(sum(v)) as s from (select v % 40 as g, mapped(v) as v from t) group by g)
    )
    group by h order by h
"""
JOINED = """
    select o_customer % 31 as segment, max(l_id) as newest, reduced(sum(l_quantity * l_price)) as revenue
    from (select mapped(o_id) as o_id, o_customer, o_day from orders)
    join (select mapped(l_id) as l_id, l_order, l_quantity, l_price from lines) on o_id = l_order
    where o_day between 20 and 80 and l_price > 200
    group by o_customer % 31
"""
"""Without an order: rows go to the reader as tasks are done."""

RANDOM = """
    select bucket, count(*) as n, reduced(sum(v)) as s
    from (select cast(floor(random() * 40) as bigint) as bucket, mapped(v) as v from t) group by bucket order by bucket
"""
LIMIT = 300
LIMITED = f"""
    select v % 40 as k, count(reduced(v)) as n
    from (select mapped(v) as v from t where random() < 0.5 limit {LIMIT}) group by v % 40 order by k
"""
"""`reduced` is called by the one task that has the limit."""

SUM = sum(range(TOTAL))
"""Of `v` in the table `t`."""

CONFIG: dict[str, Any] = {
    "sparkfusion.bytes_per_partition": 1,
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.execution.target_partitions": 4,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
"""Four tasks for each of these queries' stages, and joins that shuffle both sides."""


def write_tables(directory: Path) -> dict[str, str]:
    """`t` as the behaviour tests have it, `orders` and their `lines`; by name, the directory of each."""
    orders = [{"o_id": i, "o_customer": i * 7 % 97, "o_day": i % 100} for i in range(800)]
    lines = [
        {"l_id": 10_000 + i, "l_order": i * 13 % 900, "l_quantity": i % 50 + 1, "l_price": i * 37 % 1000}
        for i in range(4000)
    ]
    return {
        "t": str(write_parts(directory)),
        "orders": _write(directory / "orders", orders),
        "lines": _write(directory / "lines", lines),
    }


def _write(directory: Path, rows: list[dict[str, int]], files: int = 4) -> str:
    directory.mkdir()
    for number in range(files):
        part = pa.Table.from_pylist(rows[number::files])
        pq.write_table(part, directory / f"{number}.parquet", row_group_size=len(part) // 4)
    return str(directory)


def is_ordered(sql: str) -> bool:
    return "order by" in sql


def single_node_rows(sql: str, tables: Mapping[str, str]) -> list[list[Any]]:
    """The answer of DataFusion alone, with functions that do no harm."""
    context = datafusion.SessionContext()
    for name, directory in tables.items():
        context.register_parquet(name, directory)
    for name in FUNCTIONS:
        context.register_udf(datafusion.udf(_same, [pa.int64()], pa.int64(), "stable", name))
    return rows_of(context.sql(sql).collect())


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[list[Any]]:
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


def _same(values: pa.Array) -> pa.Array:
    return values
