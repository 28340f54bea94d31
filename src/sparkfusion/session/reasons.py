"""Why a query is not distributed, in words."""

from __future__ import annotations

import datafusion

from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import SparkfusionError, first_words, panics_as_errors

_SUBQUERY_LEFT = "Physical plan does not support logical expression ScalarSubquery"
_NO_JOIN = "DataFusion cannot plan a scalar subquery in ORDER BY, GROUP BY, ON, an aggregate or a window as a join"


def single_node_plans(dataframe: datafusion.DataFrame) -> bool:
    """Whether DataFusion can plan a query with the session's own options, and not those for isolated tasks."""
    try:
        with panics_as_errors():
            dataframe.execution_plan()
    except Exception:
        return False
    return True


def why_not_planned(error: SparkfusionError) -> str:
    """The reason if DataFusion can plan a query only without the options that are safe for isolated tasks."""
    if _SUBQUERY_LEFT in error.message:
        return _NO_JOIN
    return f"DataFusion cannot plan it for isolated tasks: {first_words(error)}"


def too_small(scanned: int, upper: int) -> str:
    """The reason if a query is too small for more than one partition."""
    if upper == 1:
        return f"{TARGET_PARTITIONS} is 1"
    if scanned == 0:
        return "it reads no data: metadata or constants answer it"
    return f"it reads {scanned:,} bytes, too little to split into two tasks (sparkfusion.bytes_per_partition)"
