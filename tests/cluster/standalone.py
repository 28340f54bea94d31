"""A Spark cluster on this machine: a master and two workers, processes of their own, with an executor of one core each.

The workers are at 127.0.0.1 and 127.0.0.2, two hosts for Spark: it fetches shuffle blocks over the network, and it
starts speculative copies, which it never does on the host that runs the task already (so `local-cluster` has none).
Tests and `make bench-all` use it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from sparkfusion.config import MIB
from sparkfusion.runner.spark.executor_memory import parse_size
from sparkfusion.runner.spark.java import ensure_java
from tests import leaks
from tests.cluster.probes import EXECUTOR
from tests.spark_session import DAEMON, LOOKUP, end_jvm

WORKERS = ("127.0.0.1", "127.0.0.2")
PATIENCE = 60.0
"""Seconds for a process to start or to end."""

_ROOT = Path(__file__).parents[2]
_SPARK_HOME = Path(pyspark.__file__).parent
_MASTER_URL = re.compile(r"spark://127\.0\.0\.1:\d+")


FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM's cheap compiler, for processes that live for minutes."""


@dataclass(frozen=True)
class Size:
    """What the processes of a cluster get. Daemons are the master and the workers, which only start executors.
    `cores`: of each executor.

    Attributes:
        hosts: a worker runs on each.
        executors: how many a worker has room for.
        daemon_java: further options of the master and the workers.
        python: what the executors run.
    """

    driver_memory: str = "512m"
    executor_memory: str = "512m"
    java: str = FAST_START
    settings: Mapping[str, str] = field(default_factory=dict)
    cores: int = 1
    hosts: tuple[str, ...] = WORKERS
    executors: int = 1
    daemon_java: str = ""
    python: str = sys.executable


@contextmanager
def start_cluster(home: Path, size: Size) -> Iterator[SparkSession]:
    """The cluster's processes and a session on them. Everything that they write is below `home`."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    ensure_java(temporary)
    files = f"-XX:-UsePerfData -Djava.io.tmpdir={temporary}"
    os.environ |= {
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_LOCAL_IP": WORKERS[0],
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": f"{FAST_START} {files} -Dspark.master.rest.enabled=false {size.daemon_java}",
        "PYSPARK_PYTHON": size.python,
    }
    with ExitStack() as stack:
        log = home / "master.log"
        stack.enter_context(_daemon("master.Master", log, WORKERS[0], "--port", "0"))
        master = _wait_for_master(log)
        for number, host in enumerate(size.hosts):
            memory = f"{parse_size(size.executor_memory) // MIB * size.executors}m"
            given = ("--cores", str(size.cores * size.executors), "--memory", memory)
            work = (*given, "--work-dir", str(home / f"work-{number}"), master)
            stack.enter_context(_daemon("worker.Worker", home / f"worker-{number}.log", host, *work))
        session = _session(master, size, f"{size.java} {files}")
        stack.callback(session.stop)
        yield session


@contextmanager
def standalone_session(home: Path) -> Iterator[SparkSession]:
    """A session for behaviour tests in this process, until the `with` ends. The cluster ends with it.

    The check for leftovers stays on. Executors and their Python workers may come and go, and Spark's shuffle files are
    looked for as well.
    """
    quick = {"spark.python.daemon.module": DAEMON, "spark.python.task.killTimeout": "100ms"}
    with (
        start_cluster(home, Size(settings=quick)) as session,
        leaks.known_processes(EXECUTOR, f"-m {DAEMON} pyspark.worker", LOOKUP),
        leaks.watched((home / "local", "**/shuffle_*")),
    ):
        yield session
    end_jvm()


@contextmanager
def _daemon(name: str, log: Path, host: str, *arguments: str) -> Iterator[None]:
    command = [str(_SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", host]
    with open(log, "w") as output:
        process = subprocess.Popen(
            [*command, "--webui-port", "0", *arguments],
            env={**os.environ, "SPARK_LOCAL_IP": host},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_master(log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while (found := _MASTER_URL.search(log.read_text())) is None:
        assert time.monotonic() < deadline, f"Spark's master did not start:\n{log.read_text()}"
        time.sleep(0.05)
    return found[0]


def _session(master: str, size: Size, java: str) -> SparkSession:
    settings = {
        "spark.driver.bindAddress": WORKERS[0],
        "spark.driver.host": WORKERS[0],
        "spark.driver.memory": size.driver_memory,
        "spark.driver.extraJavaOptions": java,
        "spark.executor.memory": size.executor_memory,
        "spark.executor.cores": str(size.cores),
        "spark.executor.extraJavaOptions": java,
        # Functions of tests travel by the name of their module.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **size.settings,
    }
    builder = SparkSession.builder.master(master).appName("two executors")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
