"""Parquet files, SQL over them, the rows, and the plan. Everything runs in this process."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion


def write_orders(directory: Path) -> None:
    """Four files, as another program might have left them."""
    directory.mkdir()
    for number in range(4):
        ids = range(number * 100_000, (number + 1) * 100_000)
        orders = {
            "id": ids,
            "city": [("Oslo", "Lima", "Kyoto")[i % 3] for i in ids],
            "price": [i % 97 * 0.5 for i in ids],
        }
        pq.write_table(pa.table(orders), directory / f"{number}.parquet")


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        write_orders(Path(home, "orders"))
        # a small query would run on a single node; 1 forces distribution, to show it
        with sparkfusion.connect(config={"sparkfusion.bytes_per_partition": 1}) as session:
            session.register_parquet("orders", f"{home}/orders")
            by_city = session.sql(
                "select city, count(*) as n, sum(price) as total from orders group by city order by city"
            )
            by_city.show()
            by_city.explain()
            print("most expensive city:", max(by_city.to_pylist(), key=lambda row: row["total"])["city"])


if __name__ == "__main__":
    main()
