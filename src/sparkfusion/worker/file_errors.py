"""Add the user's file names to errors: DataFusion's own message often does not have them."""

from __future__ import annotations

from sparkfusion.errors import SparkfusionError
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.wire import decode, file_scan_conf, walk

_ABOUT_FILES = (
    "Parquet error", "Csv error", "Json error", "CSV", "Avro", "Arrow file", "Ipc error", "Parser error",
    "Object Store error", "External: ", "EOF", "panicked",
)  # fmt: skip
_SHOWN_FILES = 3


def is_about_files(error: SparkfusionError) -> bool:
    return any(mark in error.message for mark in _ABOUT_FILES)


def name_table(error: SparkfusionError, table: str) -> SparkfusionError:
    """The same error about a file, with the name of the feed that the file belongs to."""
    return type(error)(f"the feed of table {table!r}: {error.message}", where=error.where, hint=error.hint)


def name_files(error: SparkfusionError, plan: bytes) -> None:
    """Add the files that the task scans as a hint, if the error is about files and has no hint yet."""
    if error.hint is not None or not is_about_files(error):
        return
    scans = [node for node in walk(decode(plan)) if exchange_of(node) is None]
    confs = [conf for node in scans if (conf := file_scan_conf(node)) is not None]
    paths = dict.fromkeys("/" + f.path for conf in confs for group in conf.file_groups for f in group.files)
    unnamed = [path for path in paths if path.rsplit("/", 1)[-1] not in error.message]
    if unnamed:
        more = f" and {len(unnamed) - _SHOWN_FILES} more" if len(unnamed) > _SHOWN_FILES else ""
        error.hint = f"the task reads {', '.join(unnamed[:_SHOWN_FILES])}{more}: one of them may be damaged or replaced"
