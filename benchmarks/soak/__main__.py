"""`make soak`: mixed queries in one session for a while. What its processes hold has to stay flat.

    make soak                                   # 300 seconds: plain DataFusion, in process and on two workers, at once
    python -m benchmarks.soak --seconds 900
    python -m benchmarks.soak --side local --only feed

Every round runs each kind of query once. After it, files in the temporary directory, memory, threads, open files and
Python objects are counted, for all processes of the session. Each side has a process of its own. Plain DataFusion says
what the same queries cost anyhow. Its allocator, which is mimalloc, keeps much of what was freed. Here it is told to
give back everything (`MIMALLOC_PURGE_DELAY=0`), so that what grows is still in use; `--keep` leaves it as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, astuple, fields
from pathlib import Path

import psutil

from benchmarks.soak.held import WARM_UP, Held, grown, growths
from benchmarks.soak.queries import FEEDS, KINDS, Engine, Kind, Ours, Plain, write_table
from tests.worker_processes import WorkerProcess, url_of

PLAIN, LOCAL, WORKERS = SIDES = ("plain", "local", "workers")
_GIVE_BACK = {"MIMALLOC_PURGE_DELAY": "0"}


def main() -> int:
    arguments = parse_arguments()
    if arguments.within is not None:
        soak(arguments.within, arguments.seconds, arguments.only, Path(tempfile.gettempdir()))
        return 0
    sides = arguments.side or SIDES
    print("side    round", *(f"{field.name:>11}" for field in fields(Held)))
    with ThreadPoolExecutor(len(sides)) as pool:
        seen = dict(zip(sides, pool.map(lambda side: watch(side, arguments), sides), strict=True))
    failed = False
    for side, rounds in seen.items():
        found = grown(rounds, seen.get(PLAIN, [])) if side != PLAIN else {}
        failed = failed or bool(found)
        judged = len(rounds) >= 2 * WARM_UP
        print(f"\n{side}: {len(rounds)} rounds" + ("" if judged else f", too few to judge; it takes {2 * WARM_UP}"))
        failed = failed or not judged
        for name, (early, late) in growths(rounds).items():
            print(f"  {name:12}{early:10.0f}{late:10.0f}  {'GREW' if name in found else ''}")
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="all sides run at once")
    parser.add_argument("--side", choices=SIDES, action="append", help="only this one")
    parser.add_argument("--only", choices=[*KINDS, *FEEDS], help="one kind of query")
    parser.add_argument("--keep", action="store_true", help="let the allocator keep what was freed, as it does")
    parser.add_argument("--within", choices=SIDES, help=argparse.SUPPRESS)
    return parser.parse_args()


def watch(side: str, arguments: argparse.Namespace) -> list[Held]:
    """Run one side in a process of its own, with its own temporary directory, and show its rounds."""
    command = [sys.executable, "-m", "benchmarks.soak", "--within", side, "--seconds", str(arguments.seconds)]
    command += ["--only", arguments.only] if arguments.only else []
    seen: list[Held] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        environment = {**os.environ, **({} if arguments.keep else _GIVE_BACK), "TMPDIR": made}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout or ():
                seen.append(Held(**json.loads(line)))
                print(f"{side:8}{len(seen):5}", *(f"{value:11.0f}" for value in astuple(seen[-1])), flush=True)
    if process.returncode or not seen:
        raise SystemExit(f"the soak of {side} ended with {process.returncode}")
    return seen


def soak(side: str, seconds: float, only: str | None, directory: Path) -> None:
    """Run rounds of queries, and write one line of JSON for each."""
    write_table(directory / "t")
    with opened(side, directory) as (engine, processes):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, kind in kinds_of(side).items():
                if only in (None, name):
                    kind(engine)
            print(json.dumps(asdict(Held.now(directory, processes))), flush=True)


def kinds_of(side: str) -> Mapping[str, Kind]:
    return KINDS if side == PLAIN else KINDS | FEEDS


@contextmanager
def opened(side: str, directory: Path) -> Iterator[tuple[Engine, list[psutil.Process]]]:
    """An engine, and the processes it runs in."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(WorkerProcess(directory / f"worker-{number}", "--slots", "2", "--trust-python"))
            for number in range(2 if side == WORKERS else 0)
        ]
        processes = [psutil.Process(), *(psutil.Process(worker.process.pid) for worker in workers)]
        if side == PLAIN:
            yield Plain(directory / "t"), processes
        else:
            ours = Ours(url_of(workers) if workers else "local", directory / "t")
            with ours.session:
                yield ours, processes


if __name__ == "__main__":
    sys.exit(main())
