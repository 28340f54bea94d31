"""The ways a program ends: what it runs, what is done to it, and the exit status that is its own."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ANYTHING = "…"
_FILES = 2
_ROWS = 20_000

# `place` is the directory of the table; `started` is a file that says: now is the time for a signal.
_BEGIN = """
import os, signal, sys, threading, time
import pyarrow as pa
import sparkfusion
from datafusion import udf

place, started = sys.argv[1:3]
target = os.environ.get("EXITS_TARGET", "local")
if target == "spark":
    from sparkfusion.runner.spark.launch import start_local
    target = start_local("local[1]", {"spark.driver.memory": "512m"})
settings = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.batch_size": 100}
session = sparkfusion.connect(target, config=settings)
session.register_parquet("t", place)

def say():
    open(started, "w").close()

def slow(values):
    say()
    time.sleep(0.02)
    return values

def busy(values):
    say()
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        pass
    return values

for function in (slow, busy):
    session.register_udf(udf(function, [pa.int64()], pa.int64(), "immutable", function.__name__))

def wait():
    while not os.path.exists(started):
        time.sleep(0.001)

LONG = "select count(*) from t a join t b on a.x % 7 = b.x % 7 where a.x + b.x > 17"
"""

_COUNT = 'assert session.sql("select count(*) as n from t where x >= 0").to_pylist() == [{"n": 40000}]\n'
_SLOW = 'query = session.sql("select sum(slow(x)) from t").stream()\nwait()\n'
_SLOW_START = """
import logging
get_logger = logging.getLogger

def getLogger(name=None):
    if "-task-" in threading.current_thread().name:
        say()
        for _ in range(100):
            time.sleep(0.001)
    return get_logger(name)

logging.getLogger = getLogger
query = session.sql(LONG).stream()
wait()
"""
_LONG = "query = session.sql(LONG).stream()\nsay()\n"


@dataclass(frozen=True)
class Case:
    """One way to end.

    Args:
        source: a program; None for the command line with these `arguments`.
        status: what it ends with, in the manner of `subprocess`: negative for a signal.
        says: words that stderr has to hold; "" if it has to be empty, ANYTHING for any or none.
        signals: what it is sent, one after the other, as soon as it says that it has started.
        here: about tasks in the process of the program.
    """

    name: str
    status: int
    source: str | None = None
    arguments: tuple[str, ...] = ()
    says: str = ""
    signals: tuple[int, ...] = ()
    here: bool = False

    def program(self) -> str:
        if self.source is not None:
            return _BEGIN + self.source
        return _COMMAND.replace("ARGUMENTS", repr(self.arguments))

    def judge(self, status: int, stderr: str, *, alone: bool = True) -> str | None:
        """What is wrong with how it ended. Unless it is alone, others write to its stderr too."""
        if status != self.status:
            return f"status {status}, not {self.status}"
        is_empty_right = not alone or bool(stderr) == bool(self.says)
        if self.says != ANYTHING and (not is_empty_right or self.says not in stderr):
            return "other words on stderr"
        noise = [each for each in _NOISE if each in stderr]
        return f"noise on stderr: {noise[0]}" if noise else None


_NOISE = ("panicked", "atexit", "Exception ignored", "fatal", "Fatal")

_COMMAND = """
import os, sys
from sparkfusion.cli import ending, main
place, started = sys.argv[1:3]
sys.argv = ["sparkfusion", *(each.replace("PLACE", place) for each in ARGUMENTS)]
sys.argv += ["--connect", os.environ.get("EXITS_TARGET", "local")]

start = ending.Ending.start
ending.Ending.start = lambda self: (start(self), open(started, "w").close())
sys.exit(main())
"""


def _command(name: str, sql: str, status: int, says: str = "", signals: tuple[int, ...] = ()) -> Case:
    options = ("-t", "t=PLACE", "-s", "sparkfusion.bytes_per_partition=1", "--format", "csv")
    return Case(f"command: {name}", status, arguments=("sql", "-c", sql, *options), says=says, signals=signals)


_LONG_SQL = "select count(*) from t a join t b on a.x % 7 = b.x % 7 where a.x + b.x > 17"

CASES = (
    _command("success", "select count(*) from t where x >= 0", 0),
    _command("user error", "select nothing from t", 1, "nothing"),
    _command("failing task", "select sum(10 / (x - 19999)) from t", 1, "zero"),
    _command("Ctrl-C", _LONG_SQL, 130, "cancelled", (signal.SIGINT,)),
    _command("Ctrl-C twice", _LONG_SQL, 130, ANYTHING, (signal.SIGINT, signal.SIGINT)),
    _command("SIGTERM", _LONG_SQL, -signal.SIGTERM, signals=(signal.SIGTERM,)),
    Case("success", 0, _COUNT),
    Case("user error", 1, _COUNT + 'session.sql("select nothing from t").collect()', says="nothing"),
    Case("failing task", 1, 'session.sql("select sum(10 / (x - 19999)) from t").collect()', says="zero"),
    Case("uncaught exception", 1, _LONG + "raise ValueError('mine')", says="mine"),
    Case("sys.exit(3)", 3, _LONG + "sys.exit(3)"),
    Case("sys.exit(3) after success", 3, _COUNT + "sys.exit(3)"),
    Case("sys.exit(3) while the first task starts", 3, _SLOW_START + "sys.exit(3)", here=True),
    Case("end while a query runs", 0, _LONG),
    Case("cancelled query", 0, _LONG + "query.close()"),
    Case("half-read query", 0, 'next(iter(session.sql("select x from t").stream()))'),
    Case("Ctrl-C", -signal.SIGINT, _LONG + "query.read_all()", says="KeyboardInterrupt", signals=(signal.SIGINT,)),
    Case("SIGTERM", -signal.SIGTERM, _LONG + "query.read_all()", signals=(signal.SIGTERM,)),
    Case(
        "SIGTERM, handled",
        143,
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n" + _LONG + "query.read_all()",
        signals=(signal.SIGTERM,),
    ),
    Case("end in a function", 0, _SLOW),
    Case("sys.exit(3) in a function", 3, _SLOW + "sys.exit(3)"),
    Case("cancel in a function", 0, _SLOW + "query.close()"),
    Case(
        "uncaught exception in a busy function",
        1,
        'query = session.sql("select sum(busy(x)) from t").stream()\nwait()\nraise ValueError("mine")',
        says="mine",
    ),
    Case(
        "end in a function on a single node",
        0,
        'query = session.sql("select slow(x) from t order by random() limit 3").stream()\nwait()',
    ),
    Case(
        "sys.exit(3) after a forked child",
        3,
        _COUNT + "import multiprocessing\n"
        "child = multiprocessing.get_context('fork').Process(target=sys.exit, args=(5,))\n"
        "child.start()\nchild.join()\nassert child.exitcode == 5\nsys.exit(3)",
    ),
    Case(
        "Ctrl-C in a function",
        -signal.SIGINT,
        'session.sql("select sum(slow(x)) from t").collect()',
        says="KeyboardInterrupt",
        signals=(signal.SIGINT,),
    ),
)


KINDS = ("command: success", "command: user error", "command: Ctrl-C", "uncaught exception", "sys.exit(3)", "SIGTERM")
"""One case of each kind: success, an error of the user, a cancel, an uncaught exception, an own status, a signal."""


def write_table(place: Path) -> None:
    """The table that every program reads."""
    place.mkdir(parents=True)
    for part in range(_FILES):
        pq.write_table(pa.table({"x": range(_ROWS)}), place / f"{part}.parquet")
