"""The DataFusion session of one task: the planner's options, its own memory pool, its own spill directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

from sparkfusion.errors import UserError
from sparkfusion.plan.functions import register_spark_functions

RUNTIME_PREFIX = "datafusion.runtime."
SPARK_FUNCTIONS_OPTION = "sparkfusion.spark_functions"
"""An option that only tasks have: the names, separated by commas, that mean Spark's functions in their plan."""
# The second one is false after a runtime option was set in a session. A context without a catalog takes no table.
_NOT_SET = frozenset({SPARK_FUNCTIONS_OPTION, "datafusion.catalog.create_default_catalog_and_schema"})


PrepareContext = Callable[[SessionContext], None]
"""Adds to a new context what cannot be sent as data: the session's object stores."""


@dataclass(frozen=True)
class Surroundings:
    """What only the process that runs a task knows.

    Attributes:
        memory_limit: bytes before DataFusion spills.
        spills: if false, a task that needs more memory fails instead.
        spill_directory: where it spills to. If empty, DataFusion makes a directory in the system's temporary directory
            when it first spills. A given directory costs a millisecond for each context, because DataFusion makes and
            removes a directory in it.
        trust_python: whether Python functions inside a plan may be unpickled.
    """

    memory_limit: int
    spill_directory: str = ""
    trust_python: bool = True
    prepare: PrepareContext | None = None
    spills: bool = True


def session_config(options: Mapping[str, str]) -> SessionConfig:
    """A configuration with these options, without those of DataFusion's runtime environment and ours."""
    return _session_config(tuple(options.items()))


@lru_cache(maxsize=16)
def _session_config(options: tuple[tuple[str, str], ...]) -> SessionConfig:
    """Setting every option takes half a millisecond. All tasks of a query have the same options and a context copies
    them, so the configuration is cached."""
    config = SessionConfig()
    for name, value in options:
        if not name.startswith(RUNTIME_PREFIX) and name not in _NOT_SET:
            config = config.set(name, value)
    # SET of an option of the runtime leaves this one false, and a context of ours needs its tables' schema
    return config.with_create_default_catalog_and_schema(enabled=True)


def task_context(options: Mapping[str, str], around: Surroundings) -> SessionContext:
    """A fresh context for one task (0.2 ms); nothing in it is shared with another task."""
    context = SessionContext(session_config(options), _runtime(around))
    _add_functions(context, options)
    if not around.trust_python:
        context = context.with_python_udf_inlining(enabled=False)
    if around.prepare is not None:
        around.prepare(context)
    return context


def _runtime(around: Surroundings) -> RuntimeEnvBuilder:
    if not around.spills:
        return RuntimeEnvBuilder().with_disk_manager_disabled().with_greedy_memory_pool(around.memory_limit)
    runtime = RuntimeEnvBuilder().with_fair_spill_pool(around.memory_limit)
    if around.spill_directory:
        return runtime.with_disk_manager_specified(around.spill_directory)
    return runtime.with_disk_manager_os()


def _add_functions(context: SessionContext, options: Mapping[str, str]) -> None:
    names = options.get(SPARK_FUNCTIONS_OPTION, "")
    try:
        register_spark_functions(context, names.split(",") if names else ())
    except KeyError as error:
        raise UserError(f"the task calls Spark functions that are not known here: {error.args[0]}") from None


def turn_off_listing_cache(context: SessionContext) -> None:
    """Turn off a context's cache of file listings, so that each of its queries sees the files that exist then."""
    context.sql("SET datafusion.runtime.list_files_cache_limit = '0'")
