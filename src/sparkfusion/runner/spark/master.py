"""What the name of a Spark master tells about where its tasks run."""

from __future__ import annotations

import re

from pyspark import SparkContext

_LOCAL_WITH_ATTEMPTS = re.compile(r"local\[[^,\]]+,\s*(\d+)\s*\]")
_ATTEMPTS_OF_A_CLUSTER = 4


def is_local(spark: SparkContext) -> bool:
    """Whether executors are threads of the driver's machine that share its file system."""
    return (spark.master or "").split("[")[0] == "local"


def attempts_of(spark: SparkContext) -> int:
    """How many attempts Spark itself makes at a task. A local master without a second number makes one."""
    found = _LOCAL_WITH_ATTEMPTS.fullmatch(spark.master or "")
    if found is not None:
        return int(found[1])
    return 1 if is_local(spark) else int(spark.getConf().get("spark.task.maxFailures") or _ATTEMPTS_OF_A_CLUSTER)
