"""A shuffle over Flight between two local workers, against the same shuffle in one process and a plain file copy.

    make bench-transport                          # 2 GB
    python -m benchmarks.transport --gigabytes 0.2 --rounds 2

Random numbers, which no compression makes smaller, are joined to a small table on a key, both sides shuffled, so every
byte crosses the exchange; half of them cross from one worker to the other. The workers have one slot each, the process
has two. Sides take turns, the best time counts, answers are compared. A copy of as many bytes from file to file
says what the machine can do; fetching frames alone, without a query around it, what the transport can. Results go to
`benchmarks/results/transport.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datafusion import SessionContext

import sparkfusion
from benchmarks.record import write_json
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import Access
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskOrder, TaskReport

TOKEN = "only-for-this-benchmark"
KEYS = 1000
COLUMNS = 7
FILES = 8
ROW_BYTES = 8 * (COLUMNS + 1)
MB = 1_000_000
SUMS = ", ".join(f"sum(b.a{i}) as s{i}" for i in range(COLUMNS))
SQL = f"select count(*) as n, {SUMS} from big b join small s on b.k = s.k"
SHUFFLED = {
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.store_memory_bytes": "64GiB",
    "datafusion.execution.target_partitions": 4,
}
COPY, LOCAL, FLIGHT, FETCH = "file copy", "shuffle in process", "shuffle over Flight", "fetch over Flight, alone"


def main() -> None:
    arguments = parse_arguments()
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bench-transport-") as made, ExitStack() as stack:
        directory = Path(made)
        size = write_tables(directory, int(arguments.gigabytes * 1000 * MB))
        addresses = [stack.enter_context(worker()) for _ in range(2)]
        url = f"flight://{','.join(address.partition('://')[2] for address in addresses)}?token={TOKEN}"
        reports: dict[str, list[TaskReport]] = {}

        def shuffle(name: str, target: str | None) -> Callable[[], object]:
            settings = {**SHUFFLED, "sparkfusion.frame_compression": arguments.compression}
            session = stack.enter_context(sparkfusion.connect(target, config=settings))
            session.register_arrow("big", str(directory / "big"))
            session.register_arrow("small", str(directory / "small"))

            def run() -> object:
                with session.sql(SQL).stream() as query:
                    rows = query.read_all().to_pylist()
                    reports[name] = query.reports()
                return rows

            return run

        sides: dict[str, Callable[[], object]] = {
            COPY: lambda: copy(directory / "big", base),
            LOCAL: shuffle(LOCAL, None),
            FLIGHT: shuffle(FLIGHT, url),
        }
        seconds = best_of(sides, arguments.rounds)
        seconds[FETCH] = min(fetch(addresses[0], directory / "big", base) for _ in range(arguments.rounds))
    show(size, seconds, reports)
    record(arguments, size, seconds, reports)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compression", default="auto", choices=["auto", "none", "lz4", "zstd"])
    return parser.parse_args()


def write_tables(directory: Path, size: int) -> int:
    """Files of random numbers; gives their bytes."""
    random = np.random.default_rng(5)
    rows = size // ROW_BYTES // FILES
    (directory / "big").mkdir()
    (directory / "small").mkdir()
    for number in range(FILES):
        columns = {"k": random.integers(0, KEYS, rows)}
        columns |= {f"a{i}": random.integers(-(2**40), 2**40, rows) for i in range(COLUMNS)}
        write(pa.table(columns), directory / "big" / f"{number}.arrow")
    write(pa.table({"k": np.arange(KEYS)}), directory / "small" / "0.arrow")
    return sum(path.stat().st_size for path in (directory / "big").iterdir())


def write(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)


@contextmanager
def worker() -> Iterator[str]:
    """A worker process with one slot; its address."""
    command = [sys.executable, "-c", "import sys; from sparkfusion.cli import main; sys.exit(main())"]
    environment = {**os.environ, "SPARKFUSION_TOKEN": TOKEN}
    with subprocess.Popen(
        [*command, "worker", "--json", "--slots", "1"], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def best_of(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    seconds: dict[str, float] = {}
    answers = []
    for _ in range(rounds):
        for name, run in sides.items():
            began = time.perf_counter()
            answer = run()
            taken = time.perf_counter() - began
            seconds[name] = min(taken, seconds.get(name, taken))
            if answer is not None:
                answers.append(answer)
    assert all(answer == answers[0] for answer in answers), "the answers differ"
    return seconds


def copy(source: Path, base: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=base) as target:
        for path in source.iterdir():
            shutil.copyfile(path, Path(target) / path.name)


def fetch(address: str, source: Path, base: str | None) -> float:
    """Seconds to bring all frames of a worker's task into files of this process."""
    context = SessionContext()
    context.register_arrow("big", str(source))
    plan = context.sql("select * from big").repartition(1).execution_plan()
    key = TaskKey("bench", 1, 0)
    made = TaskOrder(key, plan.to_bytes(context), outputs=plan.partition_count)
    channel = connect(address, Access(TOKEN))
    lease = channel.hold("bench", "s" * 24, 30.0, lambda error: None)
    try:
        order = replace(made, here=address, store_memory=64 * 1000 * MB)
        report = channel.run(order, TaskEnds(lambda frame: None), CancelToken())
        names = [file.path for file in report.manifest.files]
        with tempfile.TemporaryDirectory(dir=base) as target, ExitStack() as stack:
            began = time.perf_counter()
            files = [stack.enter_context((Path(target) / str(i)).open("wb")) for i in range(len(names))]
            for index, piece in channel.read("bench", "s" * 24, names, CancelToken(), 30.0):
                files[index].write(piece)
            return time.perf_counter() - began
    finally:
        lease.close()
        channel.close()


def crossed(reports: list[TaskReport]) -> dict[str, float]:
    """What came from another worker: bytes, messages, and seconds added up over tasks."""
    every = [each for report in reports for each in report.fetched]
    return {
        "bytes": sum(each.bytes for each in every),
        "messages": sum(each.messages for each in every),
        "seconds": sum(each.seconds for each in every),
    }


def show(size: int, seconds: dict[str, float], reports: dict[str, list[TaskReport]]) -> None:
    print(f"{size / MB:,.0f} MB, {platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    print(f"{'':<26}{'seconds':>9}{'MB/s':>9}{'times a copy':>14}")
    for name, taken in seconds.items():
        print(f"{name:<26}{taken:>9.2f}{size / MB / taken:>9.0f}{taken / seconds[COPY]:>14.2f}")
    print(f"a shuffle over Flight takes {seconds[FLIGHT] / seconds[LOCAL]:.2f} times one in process")
    wire = crossed(reports[FLIGHT])
    print(
        f"of its bytes {wire['bytes'] / MB:,.0f} MB crossed between workers in {wire['messages']:,.0f} messages, "
        f"{wire['bytes'] / MB / max(wire['seconds'], 1e-9):,.0f} MB/s for each task that fetched"
    )


def record(
    arguments: argparse.Namespace, size: int, seconds: dict[str, float], reports: dict[str, list[TaskReport]]
) -> None:
    result: dict[str, Any] = {
        "bytes": size,
        "rounds": arguments.rounds,
        "compression": arguments.compression,
        "seconds": seconds,
        "crossed": crossed(reports[FLIGHT]),
        "times_in_process": seconds[FLIGHT] / seconds[LOCAL],
        "cores": os.cpu_count(),
    }
    write_json("transport", result)


if __name__ == "__main__":
    main()
