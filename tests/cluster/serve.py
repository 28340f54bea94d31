"""The cluster's process: `python -m tests.cluster.serve <directory> <cores>` reads experiments and writes answers.

Each is a line. `cores` is the number of cores of each executor.

It ends when its input ends. If it is in the middle of something then, for instance because the tests were killed, it
ends with everything that it started after a few seconds.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.line_server import keep_stdout, read_requests
from tests.spark_session import DAEMON

if TYPE_CHECKING:
    from tests.cluster.laboratory import Laboratory

GRACE = 15.0
READY = "ready"


def main(home: Path, cores: int) -> None:
    faulthandler.register(signal.SIGUSR1)  # asked for when an answer does not come
    answers = keep_stdout()
    requests = read_requests(GRACE, end_everything)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
        from tests.cluster.laboratory import Laboratory
        from tests.cluster.standalone import Size, start_cluster

        with start_cluster(home, Size(cores=cores, settings=_settings(home))) as spark:
            laboratory = Laboratory(spark, home, cores)
            print(READY, file=answers, flush=True)
            while (line := requests.get()) is not None:
                print(_answer(laboratory, line), file=answers, flush=True)


def _settings(home: Path) -> dict[str, str]:
    """Spark as tests need it."""
    return {
        # How each attempt ended is read from here.
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (home / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        # A task that waits for a copy gets one after these seconds. One that a busy machine slows down should not.
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "6s",
        "spark.python.daemon.module": DAEMON,
        # A lost executor does not come back to be asked again.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }


def _answer(laboratory: Laboratory, line: str) -> str:
    """Whatever the experiment itself could not do is told too: the next one may still work."""
    from tests.cluster.experiment import Experiment

    try:
        return laboratory.run(Experiment.from_json(line)).to_json()
    except Exception:
        return json.dumps({"raised": traceback.format_exc()})


def end_everything() -> None:
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
