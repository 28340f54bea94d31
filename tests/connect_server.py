"""A Spark Connect server in a process of its own, on this machine, as long as a test run needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import leaks
from tests.spark_session import DAEMON, FAST_START, LOOKUP, MASTER, ROOT

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

PATIENCE = 90.0
"""Seconds for the server to start or to end."""

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HOST = "127.0.0.1"


@contextmanager
def connect_server(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The server's address, `sc://…`. Everything that it writes is below `home`."""
    import pyspark

    from sparkfusion.runner.spark.java import ensure_java

    ensure_java(Path(tempfile.gettempdir()))
    port = _free_port()
    temporary = home / "tmp"
    temporary.mkdir(parents=True)
    conf = {
        "spark.master": MASTER,
        "spark.ui.enabled": "false",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": f"{FAST_START} -XX:-UsePerfData -Djava.io.tmpdir={temporary}",
        "spark.local.dir": str(home / "local"),
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.python.daemon.module": DAEMON,
        "spark.python.task.killTimeout": "100ms",
        "spark.python.unix.domain.socket.enabled": "true",
        **(settings or {}),
    }
    spark_home = Path(pyspark.__file__).parent
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    command = [str(spark_home / "bin" / "spark-submit"), "--class", _SERVER, *options, "spark-internal"]
    log = home / "server.log"
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": _HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),  # functions of tests travel by the name of their module
    }
    with open(log, "w") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        _wait_for(process, port, log)
        yield f"sc://{_HOST}:{port}"
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def connect_session(home: Path) -> Iterator[SparkSession]:
    """A session at a server of its own, until the `with` ends.

    The check for leftovers stays on meanwhile, with two allowances: forks of Spark's Python daemon, and threads with
    which PySpark releases the results of an operation, until they are collected as garbage.
    """
    with connect_server(home) as url:
        session = open_session(url)
        try:
            with (
                leaks.known_processes(f"-m {DAEMON} pyspark.worker", LOOKUP),
                leaks.known_threads("ThreadPoolExecutor-"),
            ):
                yield session
        finally:
            session.stop()


def open_session(url: str) -> SparkSession:
    """A session of its own at the server. Not through `pyspark.sql`, whose builder refuses a process in which a classic
    Spark runs as well."""
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.Builder().remote(url).create()


def open_beside(session: SparkSession) -> SparkSession:
    """Another session at the same server."""
    return open_session(address_of(session))


def address_of(session: SparkSession) -> str:
    builder: Any = session.client._builder
    return f"sc://{builder.endpoint}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((_HOST, port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the Connect server did not start:\n{log.read_text()[-4000:]}")
