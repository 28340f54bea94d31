"""Small tables in the manner of TPC-H, and questions over them whose answers have one order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sparkfusion import Session
from tests.runners import SPLIT

ORDERS = 40_000
LINES = 160_000
FILES = 6

QUESTIONS = {
    "pricing summary": """
        select flag, count(*) as n, sum(quantity) as quantity, max(price) as price
        from lines where shipped < 2400 group by flag order by flag""",
    "shipping priority": """
        select l.order_key, sum(price) as revenue, o.ordered
        from customers c join orders o on c.customer_key = o.customer_key join lines l on l.order_key = o.order_key
        where c.segment = 'BUILDING' and o.ordered < 1200 and l.shipped > 1200
        group by l.order_key, o.ordered order by revenue desc, l.order_key limit 20""",
    "large orders": """
        select o.customer_key, o.order_key, sum(l.quantity) as quantity
        from orders o join lines l on o.order_key = l.order_key
        where o.order_key in (select order_key from lines group by order_key having sum(quantity) > 220)
        group by o.customer_key, o.order_key order by quantity desc, o.order_key limit 50""",
}
SHUFFLED = {
    **SPLIT,
    "sparkfusion.bytes_per_partition": 1,
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.execution.target_partitions": 6,
}
"""Many small tasks, both sides of every join shuffled."""


def write_tables(directory: Path) -> None:
    random = np.random.default_rng(7)
    orders = {
        "order_key": np.arange(ORDERS),
        "customer_key": random.integers(0, 3000, ORDERS),
        "ordered": random.integers(0, 2500, ORDERS),
    }
    lines = {
        "order_key": random.integers(0, ORDERS, LINES),
        "quantity": random.integers(1, 51, LINES),
        "price": random.integers(100, 100_000, LINES),
        "shipped": random.integers(0, 2500, LINES),
        "flag": random.choice(np.array(["A", "N", "R"]), LINES),
    }
    segments = np.array(["BUILDING", "MACHINERY", "FURNITURE"])
    customers = {"customer_key": np.arange(3000), "segment": segments[np.arange(3000) % 3]}
    for name, columns in (("orders", orders), ("lines", lines), ("customers", customers)):
        table = pa.table(columns)
        (directory / name).mkdir(parents=True)
        step = -(-table.num_rows // FILES)
        for part in range(FILES):
            pq.write_table(table.slice(part * step, step), directory / name / f"{part}.parquet")


def register(session: Session, directory: Path) -> None:
    for name in ("orders", "lines", "customers"):
        session.register_parquet(name, str(directory / name))
