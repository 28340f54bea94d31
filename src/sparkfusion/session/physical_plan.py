"""DataFusion's physical plan of a query, made in a context of its own with options that are safe for isolated tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import datafusion
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.config import Settings
from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import classify
from sparkfusion.plan.distribute import ISOLATION_OPTIONS
from sparkfusion.session.memory_rows import SHOW_SIZES
from sparkfusion.worker.task_context import PrepareContext, session_config

BYTES_PER_ROW = 16
"""A guess for build sides whose size DataFusion cannot tell."""

_MIN_SPLIT = "datafusion.optimizer.repartition_file_min_size"
_BROADCAST = "datafusion.optimizer.hash_join_single_partition_threshold"
_BROADCAST_ROWS = "datafusion.optimizer.hash_join_single_partition_threshold_rows"


@dataclass(frozen=True)
class PhysicalPlan:
    """A plan that is not encoded yet, and where it was made."""

    context: SessionContext
    dataframe: datafusion.DataFrame
    plan: ExecutionPlan


def make_physical_plan(
    logical: datafusion.LogicalPlan, options: Mapping[str, str], prepare: PrepareContext
) -> PhysicalPlan:
    """Plan a query with these options. `prepare` gives the context what cannot be sent as data."""
    context = SessionContext(session_config({**options, **SHOW_SIZES}))
    prepare(context)
    try:
        planned = context.create_dataframe_from_logical_plan(logical)
        return PhysicalPlan(context, planned, planned.execution_plan())
    except SystemError as error:
        if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # native code panics with a BaseException
        raise classify(error) from error


def task_options(settings: Settings, options: Mapping[str, str], partitions: int) -> dict[str, str]:
    """The session's options, changed for plans that are distributed. DataFusion's own thresholds move to values that
    suit distribution; larger values of the user are kept."""
    broadcast = settings.integer("broadcast_bytes")
    sizes = {
        _MIN_SPLIT: str(min(int(options[_MIN_SPLIT]), settings.integer("bytes_per_partition"))),
        _BROADCAST: str(max(int(options[_BROADCAST]), broadcast)),
        _BROADCAST_ROWS: str(max(int(options[_BROADCAST_ROWS]), broadcast // BYTES_PER_ROW)),
    }
    return {**options, **sizes, **ISOLATION_OPTIONS, TARGET_PARTITIONS: str(partitions)}
