"""PySpark's pure client (`pyspark-client`) has no JVM: `pyspark.core` and py4j are not there. Programs of its users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from tests.behaviour.parts import write_parts
from tests.connect_server import address_of

WITHOUT_JVM = """
import sys, warnings
warnings.simplefilter("ignore")
sys.modules["pyspark.core"] = sys.modules["py4j"] = None
import sparkfusion
from pyspark.sql import SparkSession
"""

CONNECTS = f"""{WITHOUT_JVM}
import sparkfusion.runner.spark.connect.connect_runner
try:
    sparkfusion.connect("spark")
except sparkfusion.UserError as error:
    print(error.message)
"""

QUERIES = f"""{WITHOUT_JVM}
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
on_spark = {{"sparkfusion.bytes_per_partition": 1, "sparkfusion.small_stage_bytes": 0}}
with sparkfusion.connect(spark, config=on_spark) as session:
    session.register_parquet("t", sys.argv[2])
    session.register_spark("r", spark.range(0, 100, 1, 3))
    spark.range(9).createOrReplaceTempView("nine")
    out = session.sql("select count(*) as n from r join t on r.id = t.v where r.id < 50").to_spark()
    print(out.collect()[0]["n"])
    print(session.sql("select count(*) as n from nine where id > 2").to_pylist()[0]["n"])
    try:
        session.sql("select * from missing")
    except sparkfusion.UserError as error:
        print("not found" in error.message)
"""


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_local_spark_is_refused_in_words() -> None:
    assert run(CONNECTS) == "the PySpark of this Python (pyspark-client) can only use Spark Connect\n"


@pytest.mark.long
def test_queries_need_no_jvm_here(remote_spark: SparkSession, tmp_path: Path) -> None:
    assert run(QUERIES, address_of(remote_spark), str(write_parts(tmp_path))).split() == ["50", "6", "True"]
