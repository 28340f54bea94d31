"""A Spark cluster on this machine: a master and two workers, processes of their own, with one executor each.

The workers are at 127.0.0.1 and 127.0.0.2, two hosts for Spark: it fetches shuffle blocks over the network, and it
starts speculative copies, which it never does on the host that runs the task already (so `local-cluster` has none).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from sparkfusion.runner.spark.java import ensure_java

WORKERS = ("127.0.0.1", "127.0.0.2")
PATIENCE = 60.0
"""Seconds for a process to start or to end."""

_ROOT = Path(__file__).parents[2]
_SPARK_HOME = Path(pyspark.__file__).parent
_MASTER_URL = re.compile(r"spark://127\.0\.0\.1:\d+")


@contextmanager
def start_cluster(home: Path, cores: int) -> Iterator[SparkSession]:
    """The cluster's processes and a session on them. Everything that they write is below `home`."""
    temporary = home / "tmp"
    ensure_java(temporary)
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Djava.io.tmpdir={temporary}"
    os.environ |= {
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_LOCAL_IP": WORKERS[0],
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": f"{java} -Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
    }
    with ExitStack() as stack:
        log = home / "master.log"
        stack.enter_context(_daemon("master.Master", log, WORKERS[0], "--port", "0"))
        master = _wait_for_master(log)
        for number, host in enumerate(WORKERS):
            work = ("--cores", str(cores), "--memory", "512m", "--work-dir", str(home / f"work-{number}"), master)
            stack.enter_context(_daemon("worker.Worker", home / f"worker-{number}.log", host, *work))
        session = _session(master, home, java, cores)
        stack.callback(session.stop)
        yield session


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


def _session(master: str, home: Path, java: str, cores: int) -> SparkSession:
    settings = {
        "spark.driver.bindAddress": WORKERS[0],
        "spark.driver.host": WORKERS[0],
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.memory": "512m",
        "spark.executor.cores": str(cores),
        "spark.executor.extraJavaOptions": java,
        # Functions of tests travel by the name of their module.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # How each attempt ended is read from here.
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (home / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        # A task that is slower than the others by seconds gets a copy: what a loaded machine does to a task should not.
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "2s",
        # Tasks run on both executors, also where Spark would rather wait for the one that holds their input.
        "spark.locality.wait": "0s",
        # A lost executor does not come back to be asked again.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }
    builder = SparkSession.builder.master(master).appName("sparkfusion tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
