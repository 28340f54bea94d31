"""Do driver and executors fit together? Asked once for each Spark context, before the first query."""

from __future__ import annotations

import platform
import weakref
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from pyspark import SparkContext

from sparkfusion.errors import UserError

PACKAGES = ("datafusion", "pyarrow", "sparkfusion")
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
    try:
        (there,) = spark.parallelize([0], 1).mapPartitions(_report).collect()
    except Exception as error:
        if "No module named 'sparkfusion'" not in str(error):
            raise
        there = {**here, "sparkfusion": "missing"}
    wrong = {name: there.get(name, "missing") for name in here if there.get(name) != here[name]}
    if wrong:
        shown = ", ".join(f"{name} {there_version} (driver: {here[name]})" for name, there_version in wrong.items())
        raise UserError(
            f"executors do not fit the driver: {shown}",
            hint="install the same Python and packages on the executors, for example with --archives or an image",
        )
    _checked.add(spark)


def _report(_: Iterator[int]) -> Iterator[dict[str, str]]:
    list(_)
    yield describe_environment()
