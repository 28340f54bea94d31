"""Approved plans: the explain text of a few queries, kept in `approved/` and read by people.

After a change that is meant to change plans, write them anew with `python -m tests.unit.plan.approve` and look at
the difference before committing it.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from tests.runners import SPLIT

_RANGE = re.compile(r"\d+\.parquet\[\d+\.\.\d+\]")
APPROVED = Path(__file__).parent / "approved"

QUERIES = {
    "scan_and_filter": "select item, price * 2 as twice from sales where price > 10",
    "grouped": "select item, count(*) as n, sum(price) as total from sales group by item",
    "sorted_limit": "select item, price from sales where price > 0 order by price desc, item limit 5",
    "broadcast_join": "select s.price, i.name from sales s join items i on s.item = i.id",
    "left_join": "select i.name, s.price from items i left join sales s on s.item = i.id",
    "not_in": "select name from items where id not in (select item from sales)",
    "union_and_distinct": "select item from sales union select id from items",
    "windowed": "select item, price, rank() over (partition by item order by price) as r from sales",
    "limit_below_join": "select i.name, q.price from (select * from sales limit 7) q join items i on i.id = q.item",
    "single_node": "select item, last_value(price) ignore nulls over (partition by item order by price) from sales",
}


def explain_all() -> dict[str, str]:
    """The explain text of every query, without paths of this machine."""
    with tempfile.TemporaryDirectory() as directory:
        _write(Path(directory))
        config = {**SPLIT, "sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 3}
        with sparkfusion.connect(config=config) as session:
            for table in ("sales", "items"):
                session.register_parquet(table, f"{directory}/{table}")
            return {
                name: f"{sql}\n\n{_redacted(session.sql(sql).explain_text(), directory)}\n"
                for name, sql in QUERIES.items()
            }


def _redacted(text: str, directory: str) -> str:
    """Paths and byte ranges differ between machines; so does the file that a limit is happy with."""
    return _RANGE.sub("*.parquet[range]", text.replace(directory.lstrip("/"), "data"))


def _write(directory: Path) -> None:
    """`sales` has four files and `items` two; sizes do not matter, since every byte is worth a task."""
    for table, files in (("sales", 4), ("items", 2)):
        (directory / table).mkdir()
        for file in range(files):
            numbers = range(file * 10, file * 10 + 10)
            columns = {"item": [n % 6 for n in numbers], "price": [n * 1.5 for n in numbers]}
            if table == "items":
                columns = {"id": list(numbers), "name": [f"item {n}" for n in numbers]}
            pq.write_table(pa.table(columns), directory / table / f"{file}.parquet")


def main() -> None:
    APPROVED.mkdir(exist_ok=True)
    for name, text in explain_all().items():
        (APPROVED / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
