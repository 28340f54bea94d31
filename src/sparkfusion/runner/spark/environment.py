"""Do driver and executors fit together? Asked once for each Spark context, before the first query."""

from __future__ import annotations

import platform
import re
import sys
import weakref
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version

from pyspark import SparkContext

from sparkfusion.errors import UserError
from sparkfusion.runner.spark.blame import spark_error
from sparkfusion.runner.spark.master import is_local

PACKAGES = ("datafusion", "pyarrow", "sparkfusion")
_MISSING = re.compile(r"No module named '(\w+)")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: (\S+) than")
_checked: weakref.WeakSet[SparkContext] = weakref.WeakSet()


def describe_environment() -> dict[str, str]:
    """The versions that must agree between two processes that exchange plans."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found


def check_executors(spark: SparkContext) -> None:
    """Compare versions with an executor's; plans and pickled functions do not cross versions."""
    if spark in _checked:
        return
    here = describe_environment()
    there = _ask_an_executor(spark, here)
    wrong = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    if wrong:
        shown = ", ".join(f"{name} {there.get(name, 'missing')} (driver: {here.get(name, 'any')})" for name in wrong)
        raise UserError(f"executors do not fit the driver: {shown}", hint=_remedy(spark))
    _checked.add(spark)


def _ask_an_executor(spark: SparkContext, here: dict[str, str]) -> dict[str, str]:
    try:
        (there,) = spark.parallelize([0], 1).mapPartitions(_report).collect()
    except Exception as error:
        if (missing := _MISSING.search(str(error))) is not None:
            return {**here, missing[1]: "missing"}
        if (other := _OTHER_PYTHON.search(str(error))) is not None:
            return {**here, "python": other[1]}
        raise spark_error(error, []) from error
    return there


def _remedy(spark: SparkContext) -> str:
    if is_local(spark):
        return f"start Spark with PYSPARK_PYTHON={sys.executable}, so that its workers run this Python"
    return "install the same Python and packages on the executors, for example with --archives or an image"


def _report(numbers: Iterable[int]) -> Iterator[dict[str, str]]:
    list(numbers)  # a task that does not read its input loses its worker
    yield describe_environment()
