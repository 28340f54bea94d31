"""Find the file and the line that a query on a single node could not read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import datafusion
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import SparkfusionError
from sparkfusion.session.damaged_files import NO_FOOTERS
from sparkfusion.session.memory_rows import leaves
from sparkfusion.worker.bad_lines import find_bad_line
from sparkfusion.worker.file_errors import is_about_files, name_files
from sparkfusion.worker.task_context import PrepareContext, session_config


def locate_bad_line(
    error: SparkfusionError,
    dataframes: Iterable[datafusion.DataFrame],
    options: Mapping[str, str],
    prepare: PrepareContext,
    *,
    exact: bool,
) -> SparkfusionError | None:
    """The same error with the file and its line, or with the files as a hint; None if it is not about a file.

    Args:
        dataframes: the queries of the statement. They are planned again, so they must have no effects.
        exact: whether a plan's encoding keeps every option of the scans, so that files can be read again one by one.
    """
    if not is_about_files(error):
        return None
    context = SessionContext(session_config({**options, **NO_FOOTERS}))
    prepare(context)

    def run(encoded: bytes) -> None:
        for _ in context.execute(ExecutionPlan.from_bytes(context, encoded), 0):
            pass

    plans = (context.create_dataframe_from_logical_plan(each.logical_plan()) for each in dataframes)
    found = (leaf for each in plans for leaf in leaves(each.execution_plan()))
    # the scans, each alone: it may not be possible to encode the nodes above them
    scans = [leaf.to_bytes(context) for leaf in found if "DataSourceExec" in leaf.display()]
    for scan in scans if exact else ():
        if (located := find_bad_line(error, scan, run)) is not None:
            return located
    for scan in scans:
        name_files(error, scan)
    return error
