"""Find the Parquet file because of which DataFusion could not plan a query: it reads footers while it plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import datafusion
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError, panics_as_errors
from sparkfusion.plan.wire import decode, file_scan_conf, walk
from sparkfusion.session.layout import find_unreadable
from sparkfusion.session.memory_rows import leaves
from sparkfusion.worker.file_errors import is_about_files
from sparkfusion.worker.task_context import PrepareContext, session_config

NO_FOOTERS = {"datafusion.execution.collect_statistics": "false"}
"""Options with which DataFusion plans without reading footers."""

Reads = Callable[[], Iterable[datafusion.DataFrame]]


@contextmanager
def name_damaged_file(
    reads: Reads, options: Callable[[], Mapping[str, str]], prepare: PrepareContext
) -> Iterator[None]:
    """Around planning. A panic becomes an error. If a damaged file of this machine is the reason, the error names it.

    Args:
        reads: the queries that are planned. They are planned again, without statistics, so they must have no effects.
        options: those of the session. `prepare`: gives a context the session's object stores.
    """
    try:
        with panics_as_errors():
            yield
    except SparkfusionError as error:
        found = None
        if is_about_files(error):
            with suppress(Exception), panics_as_errors():
                found = _find_damaged(reads, options(), prepare)
        if found is None:
            raise
        raise UserError(found, hint="remove or replace the file") from error


def _find_damaged(reads: Reads, options: Mapping[str, str], prepare: PrepareContext) -> str | None:
    """The first file of the queries that is meant to be Parquet and cannot be read, in words."""
    context = SessionContext(session_config({**options, **NO_FOOTERS}))
    prepare(context)
    files: dict[str, None] = {}
    for read in reads():
        plan = context.create_dataframe_from_logical_plan(read.logical_plan()).execution_plan()
        scans = [leaf for leaf in leaves(plan) if "file_type=parquet" in leaf.display()]
        for node in (node for scan in scans for node in walk(decode(scan.to_bytes(context)))):
            if (conf := file_scan_conf(node)) is not None:
                files |= dict.fromkeys(f"/{file.path}" for group in conf.file_groups for file in group.files)
    local = [file for file in files if Path(file).is_file()]
    return find_unreadable(local, lambda file: SessionContext().read_parquet(file, file_extension="").schema())
