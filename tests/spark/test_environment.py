"""Do driver and executors fit? What is missing is shipped or named, each with its host."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparkfusion
from sparkfusion import ExternalError, UserError
from sparkfusion.runner.spark import environment
from sparkfusion.runner.spark.environment import check_executors, misfits
from sparkfusion.runner.spark.shipping import build_zip
from sparkfusion.versions import MISSING, describe_environment
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.behaviour.probes import Gate
from tests.runners import ALL_ON_SPARK
from tests.spark.pythons import SITE_PACKAGES, metadata, python_with
from tests.spark.watch import wait_for_no_jobs
from tests.spark_session import FAST_START

HERE = dict(describe_environment())


@pytest.fixture
def unchecked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """As if nobody had connected to it before."""
    import weakref

    monkeypatch.setattr(environment, "_checked", weakref.WeakSet())
    return spark


class _Cluster:
    """A cluster whose every job fails with these words."""

    master = "yarn"
    defaultParallelism = 2  # noqa: N815

    def __init__(self, words: str) -> None:
        self._words = words

    def parallelize(self, *_: object) -> None:
        raise RuntimeError(self._words)


# ---- what fits


def test_hosts_with_the_same_fault_are_named_together() -> None:
    old = {**HERE, "datafusion": "54.1.0", "pyarrow": MISSING}
    answers = [{**old, "host": f"node-{number}"} for number in (1, 1, 2, 3, 4, 5)]
    answers += [HERE, {**HERE, "host": "node-9", "cloudpickle": MISSING, "sparkfusion": MISSING}]
    error = environment._refusal(HERE, misfits(HERE, answers), environment.cluster_remedy)
    assert error.message == (
        f"executors and driver have different package versions: datafusion 54.1.0 (driver: {HERE['datafusion']}), "
        "pyarrow missing on node-1, node-2, node-3 and 2 more; cloudpickle missing on node-9"
    )
    wanted = " ".join(f"{name}=={HERE[name]}" for name in ("cloudpickle", "datafusion", "pyarrow"))
    assert f"Python {HERE['python']} with {wanted}: install" in (error.hint or "")
    assert "venv-pack" in (error.hint or "")


# ---- what Spark's workers answer


def test_a_check_that_passed_is_not_repeated(unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = unchecked.sparkContext
    check_executors(context)
    monkeypatch.setattr(context, "parallelize", _Cluster("asked again").parallelize)
    check_executors(context)


def test_every_slot_is_asked(spark: SparkSession) -> None:
    answers = environment.ask_executors(spark.sparkContext)
    assert answers == [HERE] * spark.sparkContext.defaultParallelism


def test_a_local_spark_that_was_not_told_which_python_runs_the_drivers(
    unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with a virtual environment that is not activated: the first `python3` is a Python without the packages."""
    other = python_with(tmp_path, without=("datafusion", "pyarrow"))
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "python3").symlink_to(other)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(unchecked.sparkContext, "pythonExec", "python3")
    check_executors(unchecked.sparkContext)
    assert unchecked.sparkContext.pythonExec == sys.executable


def test_workers_that_lack_packages(unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Really: other Python processes, which have no sparkfusion to answer with either."""
    other = python_with(
        tmp_path,
        without=("cloudpickle", "datafusion-", "google", "protobuf"),
        files={
            **metadata("datafusion", "54.1.0"),
            "cloudpickle.py": "raise ImportError('libnothing.so: cannot open shared object file')",
            "sparkfusion/runner/spark/daemon.py": "import pyspark.daemon as plain; plain.manager()",  # as Spark's own
        },
    )
    monkeypatch.setattr(unchecked.sparkContext, "pythonExec", str(other))
    with sparkfusion.connect(unchecked, config=DISTRIBUTED | ALL_ON_SPARK) as session:
        session.register_parquet("t", write_parts(tmp_path))
        query = session.sql("select k, count(*) from t group by k")
        with pytest.raises(UserError) as caught:
            query.collect()
    assert caught.value.message == (
        f"executors and driver have different package versions: datafusion 54.1.0 (driver: {HERE['datafusion']}), "
        "protobuf missing, cloudpickle does not load: libnothing.so: cannot open shared object file "
        f"(driver: {HERE['cloudpickle']}) on {HERE['host']}"
    )
    assert f"PYSPARK_PYTHON={sys.executable}" in (caught.value.hint or "")
    monkeypatch.undo()
    assert unchecked.sparkContext.parallelize([1, 2]).collect() == [1, 2]


def test_workers_that_lack_the_daemon(unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The local Spark of the tests has a daemon of sparkfusion, and this Python has no sparkfusion."""
    monkeypatch.setattr(unchecked.sparkContext, "pythonExec", str(python_with(tmp_path)))
    with pytest.raises(UserError, match="names a module of sparkfusion, and executors have no sparkfusion") as caught:
        check_executors(unchecked.sparkContext)
    assert (caught.value.hint or "").startswith("remove the setting")


def test_connecting_does_not_wait_for_executors(unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first query that needs them does."""
    ask, go_on, asked = environment.ask_executors, threading.Event(), threading.Event()

    def slowly(*args: Any) -> Any:
        asked.set()
        assert go_on.wait(60)
        return ask(*args)

    monkeypatch.setattr(environment, "ask_executors", slowly)
    with sparkfusion.connect(unchecked, config=DISTRIBUTED | ALL_ON_SPARK) as session:
        assert asked.wait(60)
        session.register_spark("t", unchecked.range(5))
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.extend(session.sql("select sum(id) as s from t").to_pylist()))
        reader.start()
        assert not environment.is_checked(unchecked.sparkContext)
        assert not found
        go_on.set()
        reader.join(60)
        assert found == [{"s": 10}]
        assert environment.is_checked(unchecked.sparkContext)


def test_closing_does_not_wait_for_executors(
    unchecked: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The job that asks them is cancelled; the next session asks again."""
    with Gate(tmp_path) as gate:
        hold = gate.hold()
        monkeypatch.setattr(environment, "describe_environment", lambda: HERE)
        monkeypatch.setattr(environment, "reporter", lambda: lambda numbers: iter([[*numbers, hold()]]))
        with sparkfusion.connect(unchecked):
            gate.wait_for_arrivals()
        wait_for_no_jobs(unchecked)
        assert not environment.is_checked(unchecked.sparkContext)


def test_a_python_that_cannot_even_answer() -> None:
    words = (
        "Lost task 0.3 in stage 0.0 (TID 3) (node-5 executor 1): pyspark.errors.PySparkRuntimeError: "
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark ..."
    )
    context: Any = _Cluster(words)
    with pytest.raises(UserError) as caught:
        check_executors(context)
    assert (
        caught.value.message
        == f"executors and driver have different package versions: python 3.9 (driver: {HERE['python']}) on node-5"
    )


def test_another_failure_of_the_executors_is_told() -> None:
    context: Any = _Cluster("no more file handles")
    with pytest.raises(ExternalError, match="no more file handles"):
        check_executors(context)


# ---- the package as a zip


def test_the_zip_is_the_package(tmp_path: Path) -> None:
    made = build_zip(tmp_path)
    with zipfile.ZipFile(made) as content:
        names = content.namelist()
        info = content.read(f"sparkfusion-{version('sparkfusion')}.dist-info/METADATA").decode()
    source = Path(sparkfusion.__file__).parent
    assert {name for name in names if name.endswith(".py")} == {
        str(Path("sparkfusion", path.relative_to(source))) for path in source.rglob("*.py")
    }
    assert "sparkfusion/plan/wire/wire_pb2.py" in names
    assert "sparkfusion/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or "test" in name.split("/")]
    assert f"Version: {version('sparkfusion')}" in info
    assert made.stat().st_size < 2_000_000


FROM_ZIP = """
import sys
from importlib.metadata import version
from pathlib import Path
import sparkfusion
from sparkfusion.runner.spark.shipping import build_zip
print(version("sparkfusion"), sparkfusion.__file__.startswith(sys.argv[1]))
print(build_zip(Path(sys.argv[2])).read_bytes() == Path(sys.argv[1]).read_bytes())
with sparkfusion.connect() as session:
    print(session.sql("select 1 as one").to_pylist())
"""


@pytest.mark.long
def test_the_zip_runs_and_makes_itself_again(tmp_path: Path) -> None:
    """A driver that was itself shipped by Spark has the package from a zip only."""
    made, again = build_zip(tmp_path), tmp_path / "again"
    again.mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-W", "ignore", "-c", FROM_ZIP, str(made), str(again)],
        env={**os.environ, "PYTHONPATH": f"{made}:{SITE_PACKAGES}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{version('sparkfusion')} True", "True", "[{'one': 1}]"]


SHIPPED = """
import sys, time, warnings
warnings.simplefilter("ignore")
import sparkfusion
from sparkfusion.runner.spark.launch import start_local

def where(numbers):
    import sparkfusion, importlib.metadata
    list(numbers)
    yield sparkfusion.__file__, importlib.metadata.version("sparkfusion")

spark = start_local("local[2]", {"spark.driver.memory": "512m"})
before = list(sys.path)
on_executors = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.small_stage_bytes": 0}
with sparkfusion.connect(spark, config=on_executors) as session:
    session.register_parquet("t", sys.argv[1])
    frame = session.sql("select k, count(*) as n from t group by k")
    print(frame.distribution().distributed, frame.collect().num_rows)
(file, version), = set(spark.sparkContext.parallelize(range(2), 2).mapPartitions(where).collect())
print(version, ".zip/sparkfusion/__init__.py" in file, sys.path == before)
spark.stop()
"""


@pytest.mark.long
def test_executors_that_lack_the_package_get_it(tmp_path: Path) -> None:
    """A Spark of its own, because what is shipped stays as long as the context."""
    parts, scratch = write_parts(tmp_path), tmp_path / "tmp"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SHIPPED, str(parts)],
        env={
            **os.environ,
            "PYSPARK_PYTHON": str(python_with(tmp_path / "bare")),
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
    assert done.stdout.splitlines() == ["True 7", f"{version('sparkfusion')} True True"]
    assert "ModuleNotFoundError" not in done.stderr  # PySpark's daemon may print a BrokenPipeError of its own
    assert [path.name for path in scratch.iterdir() if path.name.startswith("sparkfusion-")] == []
