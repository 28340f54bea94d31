"""What a process does before its first session uses DataFusion."""

from __future__ import annotations

import logging

from sparkfusion.plan.wire.check import check_wire_format
from sparkfusion.session.stacks import has_roomy_stacks

_OWNERS = (
    "catalog", "catalog_listing", "common", "common_runtime", "datasource", "datasource_arrow", "datasource_avro",
    "datasource_csv", "datasource_json", "datasource_parquet", "execution", "expr", "functions", "functions_aggregate",
    "functions_nested", "functions_window", "optimizer", "physical_expr", "physical_expr_common", "physical_optimizer",
    "physical_plan", "proto", "pruning", "session", "spark", "sql",
)  # fmt: skip
LOGGERS = ("datafusion", "sqlparser", *(f"datafusion_{owner}" for owner in _OWNERS))


def quiet_datafusion() -> None:
    """Let DataFusion's loggers pass INFO and above. A level that the program has set is kept."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)


def prepare_datafusion() -> None:
    """Idempotent. The stacks come before everything that starts DataFusion's threads."""
    quiet_datafusion()
    has_roomy_stacks()
    check_wire_format()
