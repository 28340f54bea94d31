"""Check once for each Spark application, before our first task, that driver and executors have matching versions."""

from __future__ import annotations

import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sparkfusion.errors import UserError
from sparkfusion.runner.spark.master import is_local, settings_of
from sparkfusion.runner.spark.shipping import ship_package
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.versions import MISSING, Environment, Misfit, describe_environment, find_misfits, reporter

if TYPE_CHECKING:
    from pyspark import SparkContext

Remedy = Callable[[Environment, Iterable[str]], str]
"""What to do about packages that do not match, given this process's versions."""

_ANY_PYTHON = "python3"  # Spark's default
_SHOWN_HOSTS = 3
MOST_TASKS = 64
_OTHER_PYTHON = re.compile(r"Python in worker has different version: (\S+) than")
_NO_DAEMON = re.compile(
    r"module specification for '(sparkfusion\.\S+)' \(ModuleNotFoundError: No module named 'sparkfusion'"
)
_FAILED_HOST = re.compile(r"\(TID \d+\) \((\S+) executor")
_checked: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_checking = threading.Lock()


def check_executors(spark: SparkContext) -> None:
    """Compare versions on the executors with the driver's: plans and pickled functions cannot be used by other
    versions.

    sparkfusion is shipped to executors that lack nothing else. This is done once for each context; concurrent callers
    wait for it. All code that gives work to executors calls it first. Executors that Spark adds later are not checked,
    but a shipped package reaches them too.
    """
    with _checking:
        if spark in _checked:
            return
        _run_this_python(spark)
        compare(
            lambda: ask_executors(spark),
            lambda: ship_package(spark),
            _local_remedy if is_local(spark) else cluster_remedy,
        )
        _checked.add(spark)


def compare(ask: Callable[[], list[Environment]], ship: Callable[[], None], remedy: Remedy) -> None:
    """Raise an error if what tasks report of themselves does not match this process.

    Args:
        ask: sends the `reporter` to tasks, as many as run at once, and returns what they report. Raises Spark's error.
        ship: gives tasks this process's sparkfusion, if that is all they lack; then they are asked again.
        remedy: what the user can do.
    """
    here = describe_environment()
    found = misfits(here, _ask(ask, here))
    if found and all(_is_lack_of_us(each) for wrong in found.values() for each in wrong):
        ship()
        found = misfits(here, _ask(ask, here))
    if found:
        raise _refusal(here, found, remedy)


def _run_this_python(spark: SparkContext) -> None:
    """Let workers of a local Spark run the driver's Python, unless the user chose another one.

    Spark would use the first `python3` that it finds. That is a different one if the driver's virtual environment is
    not activated, and with a local Spark the user cannot mean another one.
    """
    if not is_local(spark) or spark.pythonExec != _ANY_PYTHON:
        return
    if "PYSPARK_PYTHON" not in os.environ and "spark.pyspark.python" not in settings_of(spark):
        spark.pythonExec = sys.executable


def is_checked(spark: SparkContext) -> bool:
    return spark in _checked


def slots_to_ask(spark: SparkContext) -> int:
    """As many tasks as run at once, so that every executor gets at least one."""
    return max(1, min(spark.defaultParallelism, MOST_TASKS))


def ask_executors(spark: SparkContext) -> list[Environment]:
    tasks = slots_to_ask(spark)
    return list(spark.parallelize(range(tasks), tasks).mapPartitions(reporter()).collect())


def _ask(ask: Callable[[], list[Environment]], here: Environment) -> list[Environment]:
    """The versions that tasks report. Another Python version cannot even answer; then Spark's error says it."""
    try:
        return ask()
    except Exception as error:
        if _NO_DAEMON.search(str(error)):
            raise UserError(
                "Spark cannot start Python workers: the setting spark.python.daemon.module names a module of "
                "sparkfusion, and executors have no sparkfusion installed",
                hint="remove the setting, and sparkfusion is sent to the executors; or install it there",
            ) from error
        other = _OTHER_PYTHON.search(str(error))
        if other is None:
            raise spark_error(error, []) from error
        host = _FAILED_HOST.search(str(error))
        return [{**here, "host": host[1] if host is not None else "an executor", "python": other[1]}]


def misfits(here: Environment, answers: Iterable[Environment]) -> dict[str, list[Misfit]]:
    """The packages that do not match, by host. Hosts without any are left out."""
    found: dict[str, list[Misfit]] = {}
    for there in answers:
        for wrong in find_misfits(here, there):
            if wrong not in found.get(there["host"], []):
                found.setdefault(there["host"], []).append(wrong)
    return found


def _is_lack_of_us(it: Misfit) -> bool:
    return it.package == "sparkfusion" and it.there == MISSING


def _show(it: Misfit) -> str:
    return f"{it.package} {it.there}" + (f" (driver: {it.here})" if it.there != MISSING else "")


def _refusal(here: Environment, found: Mapping[str, list[Misfit]], remedy: Remedy) -> UserError:
    """The error message; hosts with the same problem are named together. A missing sparkfusion would be shipped."""
    hosts: dict[str, list[str]] = {}
    for host, wrong in found.items():
        shown = ", ".join(_show(each) for each in wrong if not _is_lack_of_us(each)) or "sparkfusion missing"
        hosts.setdefault(shown, []).append(host)
    parts = [f"{shown} on {_some(names)}" for shown, names in hosts.items()]
    packages = {each.package for wrong in found.values() for each in wrong if not _is_lack_of_us(each)}
    return UserError(
        f"executors and driver have different package versions: {'; '.join(parts)}", hint=remedy(here, packages)
    )


def _some(hosts: list[str]) -> str:
    more = len(hosts) - _SHOWN_HOSTS
    return ", ".join(hosts[:_SHOWN_HOSTS]) + (f" and {more} more" if more > 0 else "")


def _local_remedy(here: Environment, packages: Iterable[str]) -> str:
    return (
        f"start Spark with PYSPARK_PYTHON={sys.executable}, so that its workers run this Python: put "
        'os.environ["PYSPARK_PYTHON"] = sys.executable before the line that makes the SparkSession'
    )


def cluster_remedy(here: Environment, packages: Iterable[str]) -> str:
    wanted = sorted(f"{name}=={here[name]}" for name in packages if name not in ("python", "sparkfusion"))
    python = f"Python {here['python']}" + (" with " + " ".join(wanted) if wanted else "")
    return (
        f"every executor needs {python}: install it on the nodes or in their image, or pack this environment with "
        "venv-pack or conda-pack, start Spark with spark.archives=packed.tar.gz#environment and "
        "PYSPARK_PYTHON=./environment/bin/python. sparkfusion itself is shipped where it is missing"
    )
