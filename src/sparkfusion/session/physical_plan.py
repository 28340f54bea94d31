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
_ARRAY_RANGE = "datafusion.execution.perfect_hash_join_small_build_threshold"
_ARRAY_DENSITY = "datafusion.execution.perfect_hash_join_min_key_density"
_DEFAULT_RANGE, _DEFAULT_DENSITY = 1024, 0.15
_LARGER_RANGE = 256 * 1024
"""An array for so many keys takes 1 MiB."""
_LEAST_DENSITY = 0.05
"""An array takes four bytes for each key of the range: 80 for each row at this density, and a hash table about 30."""


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


def array_join_options(options: Mapping[str, str], partitions: int) -> dict[str, str]:
    """Options with which DataFusion joins by an array instead of a hash table in more cases: it looks up keys faster.

    DataFusion does it if the keys of the build side fill 15 % of their range. A shuffle between the partitions of one
    task leaves each with a part of the keys and all of the range, so that share falls with the number of partitions.
    For tasks of several partitions only: if the array needs more memory than there is, the query runs again in others.
    Values of the user are kept.
    """
    if float(options[_ARRAY_DENSITY]) != _DEFAULT_DENSITY or int(options[_ARRAY_RANGE]) != _DEFAULT_RANGE:
        return {}
    density = max(_LEAST_DENSITY, _DEFAULT_DENSITY / partitions)
    return {_ARRAY_RANGE: str(_LARGER_RANGE), _ARRAY_DENSITY: f"{density:g}"}
