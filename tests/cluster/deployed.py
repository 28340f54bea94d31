"""A cluster as `docs/deploy.md` describes one, in a process of its own, and a query on it.

`python -m tests.cluster.deployed <kind> <directory> <cores>` writes a line when the cluster is ready, and one with what
it found. It ends when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.line_server import keep_stdout, read_requests
from tests.cluster.serve import GRACE, READY, end_everything

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sparkfusion import Session
    from tests.cluster.standalone import Size

SQL = "select v % 40 as g, count(*) as n, sum(v) as s from t group by 1 order by 1"
SHIPPED, DYNAMIC = "shipped", "dynamic"
PATIENCE = 60.0


def main(kind: str, home: Path) -> None:
    answers = keep_stdout()
    requests = read_requests(GRACE, end_everything)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
        from tests.behaviour.parts import write_parts
        from tests.cluster.standalone import start_cluster

        size, run = {SHIPPED: (_shipped_size, run_shipped), DYNAMIC: (_dynamic_size, run_dynamic)}[kind]
        table = write_parts(home)
        with start_cluster(home, size(home)) as spark:
            print(READY, file=answers, flush=True)
            try:
                found = run(spark, table)
            except Exception:
                found = {"raised": traceback.format_exc()}
            print(json.dumps(found), file=answers, flush=True)
            while requests.get() is not None:
                pass


def _shipped_size(home: Path) -> Size:
    """Encrypted, with Spark's shuffle service, two executors on one worker, and a Python that comes as an archive."""
    from tests.cluster.packed import pack_environment
    from tests.cluster.standalone import WORKERS, Size

    protected = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": "a-secret-of-the-tests",
        "spark.network.crypto.enabled": "true",
        "spark.shuffle.service.enabled": "true",
        "spark.shuffle.service.port": str(_free_port()),
    }
    return Size(
        hosts=WORKERS[:1],
        executors=2,
        daemon_java=" ".join(f"-D{name}={value}" for name, value in protected.items()),
        python="./environment/bin/python",
        settings={
            **protected,
            "spark.shuffle.push.enabled": "true",
            "spark.archives": f"{pack_environment(home)}#environment",
            "spark.executorEnv.PYTHONPATH": "",  # the archive has to suffice
        },
    )


def run_shipped(spark: SparkSession, table: Path) -> dict[str, Any]:
    """One query over files, whose first stage loses an executor when it is finished, and one over a feed."""
    import sparkfusion
    from tests.suites.fed import FilesOf

    with sparkfusion.connect(spark, config=_config()) as session:
        session.register_parquet("t", str(table))
        session.register_feed("fed", FilesOf(table), format="parquet")
        pythons = spark.sparkContext.parallelize(range(2), 2).mapPartitions(_environment).collect()
        fed = session.sql(SQL.replace("from t", "from fed")).to_pylist()
        killed: list[int] = []
        rows, recomputed = _read(session, lambda: killed.append(_kill_an_executor()) if not killed else None)
    found = {"pythons": pythons, "fed": fed, "rows": rows, "recomputed": recomputed, "killed": len(killed)}
    return {**found, "pushes": _pushes_shuffles(spark)}


def _pushes_shuffles(spark: SparkSession) -> bool:
    """Whether Spark pushes the blocks of its shuffles: it is asked to."""
    context: Any = spark.sparkContext
    return bool(
        context._jvm.org.apache.spark.util.Utils.isPushBasedShuffleEnabled(context._jsc.sc().conf(), True, True)
    )


def _dynamic_size(home: Path) -> Size:
    from tests.cluster.standalone import Size

    return Size(
        settings={
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "0",
            "spark.dynamicAllocation.maxExecutors": "2",
            "spark.dynamicAllocation.executorIdleTimeout": "2s",
        }
    )


def run_dynamic(spark: SparkSession, table: Path) -> dict[str, Any]:
    """A query, no executors, and the query again."""
    import sparkfusion
    from sparkfusion.runner.spark.master import count_executors

    def executors() -> int:
        return count_executors(spark.sparkContext)

    with sparkfusion.connect(spark, config=_config()) as session:
        session.register_parquet("t", str(table))
        seen: list[int] = []
        found = []
        for _ in range(2):
            rows, _ = _read(session, lambda: seen.append(executors()))
            found.append(rows)
            _until(lambda: executors() == 0, "Spark has released its executors")
    return {"rows": found, "executors": seen}


def _config() -> dict[str, Any]:
    from tests.cluster.tables import CONFIG

    return {**CONFIG, "sparkfusion.small_stage_bytes": 0}


def _read(session: Session, after_first_stage: Callable[[], object]) -> tuple[list[dict[str, Any]], int]:
    """The rows of the query, and how many inputs were computed again."""
    from sparkfusion.observe.events import Event, StageFinished

    def watch(event: Event) -> None:
        if isinstance(event, StageFinished) and event.stage == 1:
            after_first_stage()

    session.subscribe(watch)
    with session.sql(SQL).stream() as query:
        rows = query.read_all().to_pylist()
    return rows, sum(report.recomputed_inputs for report in query.reports())


def _environment(numbers: Iterable[int]) -> Iterator[dict[str, str]]:
    """In a task: where its Python and its packages are."""
    import datafusion

    list(numbers)
    yield {"prefix": sys.prefix, "datafusion": str(datafusion.__file__), "directory": str(Path.cwd())}


def _kill_an_executor() -> int:
    executor = next(_executors())
    os.kill(executor.pid, signal.SIGKILL)
    _until(lambda: not executor.is_running() or executor.status() == psutil.STATUS_ZOMBIE, "the executor is gone")
    return executor.pid


def _executors() -> Iterator[psutil.Process]:
    from tests.cluster.probes import EXECUTOR

    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # Python workers of executors come and go
            if EXECUTOR in each.cmdline():
                yield each


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for this: {what}"
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
