"""A program with a Hive metastore: queries over its tables answer like Spark. Run by test_hive_metastore.py."""

from __future__ import annotations

import sys
from pathlib import Path

import sparkfusion
from sparkfusion.runner.spark.launch import start_local
from tests.spark.catalog_rows import assert_like_spark, how
from tests.spark_session import FAST_START

TABLES = {
    "days": "stored as parquet partitioned by (day string)",
    "lines": "row format delimited fields terminated by '|' stored as textfile",
    "sourced": "using parquet",
}


def main(home: Path) -> None:
    spark = start_local(
        "local[2]",
        {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.hive.metastore.schema.verification": "false",
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
            "spark.driver.extraJavaOptions": f"{FAST_START} -Dderby.stream.error.file={home / 'derby.log'}",
        },
    )
    with sparkfusion.connect(spark, config={"sparkfusion.bytes_per_partition": 1}) as session:
        spark.sql("create database shop")
        for name, kind in TABLES.items():
            spark.sql(f"create table shop.{name} (n bigint, label string) {kind}")
        spark.sql("insert into shop.days partition (day) select id, string(id), concat('d', id % 3) from range(9)")
        spark.sql("insert into shop.lines select id, string(id) from range(9)")
        spark.sql("insert into shop.sourced select id, string(id) from range(9)")
        for name in TABLES:
            assert_like_spark(session, spark, f"select * from shop.{name}")
            print(name, how(session, f"shop.{name}"), sep=": ")
        assert_like_spark(session, spark, "select sum(n) as s from shop.days where day = 'd1'")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
