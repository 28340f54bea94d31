"""An Iceberg table, found through its own catalog; and the snapshot that it had before the last rows came."""

import tempfile

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import sparkfusion
from sparkfusion import feeds

COUNT = "select city, count(*) as n from {} group by city order by city"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        catalog = SqlCatalog("shop", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
        catalog.create_namespace("sales")
        monday = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", "Oslo"]})
        table = catalog.create_table("sales.orders", monday.schema)
        table.append(monday)
        before = table.metadata.current_snapshot_id
        table.append(pa.table({"id": [4, 5], "city": ["Kyoto", "Lima"]}))
        with sparkfusion.connect() as session:
            session.register_feed("orders", feeds.IcebergFiles(table))
            session.register_feed("orders_before", feeds.IcebergFiles(table, snapshot_id=before))
            session.sql(COUNT.format("orders")).show()
            session.sql(COUNT.format("orders_before")).show()


if __name__ == "__main__":
    main()
