"""Flight workers as processes of their own, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from sparkfusion.transport.base import Access, WorkerChannel
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.server.version import WorkerStatus
from tests import leaks

TOKEN = "a-token-for-tests-only"
ROOT = Path(__file__).parents[1]
IDLE = WorkerStatus(running=0, queries=0, files=0, bytes=0)
COMMAND = "import sys; from sparkfusion.cli import main; sys.exit(main())"


class WorkerProcess:
    """One worker. `stop` ends it politely; signals may do other things to it.

    Args:
        packages: a directory of installed packages that only this process knows.
    """

    def __init__(
        self, directory: Path, *options: str, port: int = 0, token: str = TOKEN, packages: Path | None = None
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.options = options
        command = [
            sys.executable,
            "-c",
            COMMAND,
            "worker",
            "--json",
            "--store-dir",
            str(directory),
            "--port",
            str(port),
        ]
        path = os.pathsep.join(map(str, filter(None, (ROOT, packages))))
        environment = {**os.environ, "SPARKFUSION_TOKEN": token, "PYTHONPATH": path}
        self.log = directory / "log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.communicate()
            raise RuntimeError(f"the worker did not start: {self.log.read_text()}")
        told = json.loads(line)
        self.address: str = told["address"]
        self.metrics: str | None = told.get("metrics")

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def channel(self, access: Access | None = None) -> WorkerChannel:
        return connect(self.address, access or Access(TOKEN))

    def status(self) -> WorkerStatus:
        channel = self.channel()
        try:
            return channel.status()
        finally:
            channel.close()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """End it: politely, and if that takes long, by force."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()


def url_of(workers: Sequence[WorkerProcess]) -> str:
    places = ",".join(worker.address.partition("://")[2] for worker in workers)
    return f"flight://{places}?token={TOKEN}"


def warm_up(workers: Sequence[WorkerProcess], directory: Path) -> None:
    """Wait until processes for tasks are there: tests that look at the time are not about their start."""
    for part in range(4 * len(workers)):
        pq.write_table(pa.table({"x": [part]}), directory / f"{part}.parquet")
    with sparkfusion.connect(url_of(workers), config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_parquet("t", directory)
        session.sql("select x, count(*) from t group by x").collect()


@contextmanager
def worker_processes(directory: Path, count: int) -> Iterator[list[WorkerProcess]]:
    """Workers that trust us. Their files count as leftovers of the test that made them."""
    with ExitStack() as stack:
        workers = []
        for number in range(count):
            worker = stack.enter_context(WorkerProcess(directory / str(number), "--slots", "2", "--trust-python"))
            stack.enter_context(leaks.watched((worker.directory, f"{leaks.FILE_PREFIX}*")))
            stack.enter_context(leaks.watched((Path("/dev/shm"), f"{leaks.FILE_PREFIX}{worker.process.pid}-*")))
            workers.append(worker)
        warm_up(workers, directory)
        yield workers
        left = [worker.status() for worker in workers if worker.status() != IDLE]
        assert not left, f"workers have something left: {left}"
