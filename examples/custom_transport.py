"""A transport of your own. This one is Arrow Flight with every call counted; another might speak another protocol.

A transport is found by the scheme of an address, through an entry point of an installed package. The example writes
such a package into a temporary directory; yours has the entry point in its pyproject.toml.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

import sparkfusion
from sparkfusion.transport.base import Access, WorkerChannel
from sparkfusion.transport.flight import Flight

CALLS: Counter[str] = Counter()
ENTRY_POINT = "[sparkfusion.transports]\ncounted = custom_transport:Counted\n"


class Counted:
    """The transport of `counted://host:port`."""

    def connect(self, address: str, access: Access) -> WorkerChannel:
        channel = Flight().connect(address.replace("counted://", "flight://", 1), access)
        return cast(WorkerChannel, CountedChannel(address, channel))


class CountedChannel:
    """A connection to one worker: `sparkfusion.transport.base.WorkerChannel` says what it can do."""

    def __init__(self, address: str, channel: WorkerChannel) -> None:
        self.address = address
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        CALLS[name] += 1
        return getattr(self._channel, name)


def install(site: Path) -> None:
    """What `pip install` leaves of a package with that entry point."""
    info = site / "custom_transport-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: custom_transport\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)
    (site / "custom_transport.py").write_text(Path(__file__).read_text())


def main() -> None:
    token = secrets.token_urlsafe(16)
    with tempfile.TemporaryDirectory() as home:
        install(Path(home))
        sys.path.insert(0, home)
        command = [str(Path(sys.executable).with_name("sparkfusion")), "worker", "--json"]
        environment = {**os.environ, "SPARKFUSION_TOKEN": token, "PYTHONPATH": home}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as worker:
            try:
                assert worker.stdout is not None
                port = json.loads(worker.stdout.readline())["address"].rpartition(":")[2]
                query_through(f"counted://127.0.0.1:{port}", token)
            finally:
                worker.terminate()


def query_through(address: str, token: str) -> None:
    installed: Any = import_module("custom_transport")  # that one counts, not this program

    os.environ["SPARKFUSION_TOKEN"] = token
    with sparkfusion.connect(address, config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_record_batches("t", [[pa.record_batch({"k": [1, 2, 1]})], [pa.record_batch({"k": [2, 2, 3]})]])
        session.sql("select k, count(*) as n from t group by k order by k").show()
    print("calls:", dict(installed.CALLS))


if __name__ == "__main__":
    main()
