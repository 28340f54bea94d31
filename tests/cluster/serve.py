"""The cluster's process: `python -m tests.cluster.serve <directory> <cores>` reads experiments and writes answers.

Each is a line. `cores` is the number of cores of each executor.

It ends when its input ends. If it is in the middle of something then, for instance because the tests were killed, it
ends with everything that it started after a few seconds.
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import psutil

if TYPE_CHECKING:
    from tests.cluster.laboratory import Laboratory

GRACE = 15.0
READY = "ready"


def main(home: Path, cores: int) -> None:
    faulthandler.register(signal.SIGUSR1)  # asked for when an answer does not come
    answers = _keep_stdout()
    requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
        from tests.cluster.laboratory import Laboratory
        from tests.cluster.standalone import start_cluster

        with start_cluster(home, cores) as spark:
            laboratory = Laboratory(spark, home, cores)
            print(READY, file=answers, flush=True)
            while (line := requests.get()) is not None:
                print(_answer(laboratory, line), file=answers, flush=True)


def _answer(laboratory: Laboratory, line: str) -> str:
    """Whatever the experiment itself could not do is told too: the next one may still work."""
    from tests.cluster.experiment import Experiment

    try:
        return laboratory.run(Experiment.from_json(line)).to_json()
    except Exception:
        return json.dumps({"raised": traceback.format_exc()})


def _keep_stdout() -> TextIO:
    """Where answers go. Whatever else is written, here or by the JVM, goes to the log."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _read(requests: queue.SimpleQueue[str | None]) -> None:
    for line in sys.stdin:
        requests.put(line)
    requests.put(None)
    time.sleep(GRACE)
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
