"""Verify in pytest that your queries have the same answer distributed and on a single node.

Run it with `pytest test_my_queries.py`.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion.verify import assert_distributed_eq

QUERIES = {
    "totals": "select city, sum(price) as total from orders group by city",
    "latest": "select id, price from orders order by id desc limit 10",
    "ranks": "select city, id, rank() over (partition by city order by price desc) as place from orders",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sparkfusion.Session]:
    directory: Path = tmp_path_factory.mktemp("orders")
    for number in range(3):
        ids = range(number * 1000, number * 1000 + 1000)
        table = pa.table({"id": ids, "city": [("Oslo", "Lima")[i % 2] for i in ids], "price": [i % 89 for i in ids]})
        pq.write_table(table, directory / f"{number}.parquet")
    with sparkfusion.connect(config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("orders", str(directory))
        yield session


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_answer_is_the_single_node_one(session: sparkfusion.Session, query: str) -> None:
    assert_distributed_eq(session, query)
