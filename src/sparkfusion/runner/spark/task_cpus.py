"""How many CPUs Spark reserves for a task: `spark.task.cpus`, or as many as a wide task has partitions."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from sparkfusion.runner.spark.master import settings_of
from sparkfusion.runner.spark.resident import count_holders

if TYPE_CHECKING:
    from pyspark import SparkContext

_TAKE_PROFILES = ("spark://", "local-cluster[", "yarn", "k8s://")


def usual_cpus(spark: SparkContext) -> int:
    """How many CPUs Spark reserves for a task that asks for nothing."""
    return int(settings_of(spark).get("spark.task.cpus") or 1)


def most_cpus(spark: SparkContext) -> int:
    """How many CPUs a task can have: all cores of an executor, if tasks can ask for those of the executors that are
    there.

    With dynamic allocation, Spark would start other executors for such tasks. Without `spark.executor.cores`, the
    executors of a standalone cluster may differ in size, and a task might wait for one that is gone.
    """
    conf, usual = settings_of(spark), usual_cpus(spark)
    cores = conf.get("spark.executor.cores")
    grows = str(conf.get("spark.dynamicAllocation.enabled") or "").lower() == "true"
    if cores is None or grows or not (spark.master or "").startswith(_TAKE_PROFILES):
        return usual
    return max(usual, int(cores))


def reserved_cpus(spark: SparkContext, partitions: int) -> int:
    """How many CPUs a task of so many partitions has.

    A task that asks for more than an executor has would wait for ever, so resident workers, which hold CPUs for long,
    are counted.
    """
    usual = usual_cpus(spark)
    free = most_cpus(spark) - usual * count_holders(spark)
    return max(usual, min(partitions, free))


def profile_for(spark: SparkContext, partitions: int) -> Any | None:
    """What tasks of so many partitions ask Spark for, as an object of the JVM; None if it is the usual."""
    cpus = reserved_cpus(spark, partitions)
    return _profile(spark, cpus) if cpus > usual_cpus(spark) else None


@functools.lru_cache(maxsize=64)
def _profile(spark: SparkContext, cpus: int) -> Any:
    """Cached, because Spark keeps every profile that it has seen."""
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(cpus)).build._java_resource_profile
