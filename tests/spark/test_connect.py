"""Connecting to Spark: whose session it is, and what cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import datafusion
import psutil
import pytest
from pyspark.sql import SparkSession

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.runner.spark.master import attempts_of, is_local
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.spark_session import FAST_START
from tests.suites.spark_context import Context

GROUPED = "select k, count(*) as n from t group by k"


def answers(session: Session, parts: Path) -> bool:
    if not session.table_exist("t"):
        session.register_parquet("t", parts)
    frame = session.sql(GROUPED)
    return frame.distribution().distributed and frame.collect().num_rows == 7


def test_a_users_session_stays_open(spark: SparkSession, tmp_path: Path) -> None:
    with sparkfusion.connect(spark, config=DISTRIBUTED) as session:
        assert answers(session, write_parts(tmp_path))
    assert len(spark.range(3).collect()) == 3


def test_the_name_spark_means_the_active_session(spark: SparkSession, tmp_path: Path) -> None:
    with sparkfusion.connect("spark", config=DISTRIBUTED) as session:
        assert answers(session, write_parts(tmp_path))
    assert len(spark.range(3).collect()) == 3


def test_the_active_session_is_found_from_any_thread(spark: SparkSession, tmp_path: Path) -> None:
    """Spark knows an active session only in the thread that made it; it must not be taken for ours and stopped."""
    parts, found = write_parts(tmp_path), []

    def use() -> None:
        with sparkfusion.connect("spark", config=DISTRIBUTED) as session:
            found.append(answers(session, parts))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [True]
    assert len(spark.range(3).collect()) == 3


def test_workers_of_a_local_spark_are_forked_with_their_imports(spark: SparkSession) -> None:
    """The process that forks Python workers has loaded DataFusion itself, so a new worker need not."""

    def libraries_of_the_daemon(_: int) -> list[str]:
        return [Path(each.path).name for each in psutil.Process(os.getppid()).memory_maps()]

    (found,) = spark.sparkContext.parallelize([0], 1).map(libraries_of_the_daemon).collect()
    assert Path(datafusion._internal.__file__).name in found


def test_tasks_and_partitions_follow_sparks_cores(spark: SparkSession) -> None:
    with sparkfusion.connect(spark) as session:
        assert session.config["datafusion.execution.target_partitions"] == "2"


def test_another_thing_of_spark_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UserError, match=r"cannot run on a pyspark\..*SparkContext"):
        sparkfusion.connect(spark.sparkContext)


def test_a_stopped_session_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(UserError, match="is stopped"):
        sparkfusion.connect(spark)


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # how Python notes that there is no such module
    with pytest.raises(UserError, match="pyspark is not installed") as caught:
        sparkfusion.connect("spark")
    assert caught.value.hint == "pip install 'sparkfusion[spark]'"


@pytest.mark.parametrize(
    ("master", "local", "attempts"),
    [
        ("local", True, 1),
        ("local[4]", True, 1),
        ("local[*, 3]", True, 3),
        ("local[2,4]", True, 4),
        ("local-cluster[2,1,1024]", False, 4),
        ("spark://host:7077", False, 4),
        ("yarn", False, 4),
    ],
)
def test_what_a_master_is(master: str, local: bool, attempts: int) -> None:
    context: Any = Context(master)
    assert is_local(context) is local
    assert attempts_of(context) == attempts


def test_a_clusters_attempts_are_its_users() -> None:
    context: Any = Context("yarn", task__maxFailures="9")
    assert attempts_of(context) == 9


# ---- a session of our own, with the Java that comes from PyPI

SCRIPT = """
import os, sys, warnings
warnings.simplefilter("ignore")
import sparkfusion
from pyspark import SparkContext

on_spark = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.small_stage_bytes": 0}
with sparkfusion.connect("spark", config=on_spark) as session:
    session.register_parquet("t", sys.argv[1])
    context = SparkContext._active_spark_context
    print(context.master, context.uiWebUrl, context.getConf().get("spark.driver.bindAddress"))
    print(session.sql("select k, count(*) as n from t group by k").distribution().distributed)
    print(session.sql("select k, count(*) as n from t group by k").collect().num_rows)
    print(context._jvm.java.lang.System.getProperty("java.version").split(".")[0])
print(SparkContext._active_spark_context)
"""


@pytest.mark.long
def test_without_java_a_session_is_started_and_stopped(tmp_path: Path) -> None:
    parts, scratch, empty = write_parts(tmp_path), tmp_path / "tmp", tmp_path / "bin"
    scratch.mkdir()
    empty.mkdir()
    for tool in ("bash", "dirname", "sh", "ps", "tr", "rm", "cat", "grep", "readlink"):
        found = Path("/bin", tool)
        if found.exists():
            (empty / tool).symlink_to(found)
    variables = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(parts)],
        env={
            **variables,
            "PATH": str(empty),
            "TMPDIR": str(scratch),
            "SPARK_LOCAL_DIRS": str(scratch),
            "JDK_JAVA_OPTIONS": FAST_START,
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["local[*,4] None 127.0.0.1", "True", "7", "21", "None"]
    assert [path.name for path in scratch.iterdir() if path.name.startswith("sparkfusion-")] == []
