"""DataFusion's options for Parquet files as options of a COPY, so that the rows are written like any others."""

from __future__ import annotations

from datafusion.dataframe import ParquetColumnOptions, ParquetWriterOptions

from sparkfusion.session.session_settings import show_value
from sparkfusion.session.sql_names import is_plain_name

_FILE = (
    "data_pagesize_limit",
    "write_batch_size",
    "writer_version",
    "skip_arrow_metadata",
    "compression",
    "dictionary_enabled",
    "dictionary_page_size_limit",
    "statistics_enabled",
    "max_row_group_size",
    "created_by",
    "column_index_truncate_length",
    "statistics_truncate_length",
    "data_page_row_count_limit",
    "encoding",
    "bloom_filter_on_write",
    "bloom_filter_fpp",
    "bloom_filter_ndv",
    "allow_single_file_parallelism",
    "maximum_parallel_row_group_writers",
    "maximum_buffered_record_batches_per_stream",
)
_COLUMN = (
    "encoding",
    "dictionary_enabled",
    "compression",
    "statistics_enabled",
    "bloom_filter_enabled",
    "bloom_filter_fpp",
    "bloom_filter_ndv",
)
_SET_BY_DEFAULT = ("compression", "dictionary_enabled", "statistics_enabled", "column_index_truncate_length")
"""None means "the Parquet library's own default" here, which a COPY cannot express."""


def copy_options(options: ParquetWriterOptions) -> dict[str, str] | None:
    """The options of the COPY; None if a COPY cannot express them.

    >>> copy_options(ParquetWriterOptions(compression="snappy"))["format.compression"]
    'snappy'
    >>> print(copy_options(ParquetWriterOptions(compression=None)))
    None
    """
    columns = options.column_specific_options or {}
    if any(getattr(options, name) is None for name in _SET_BY_DEFAULT):
        return None
    if not all(map(is_plain_name, columns)):  # DataFusion reads the names of options in lower case
        return None
    found = {f"format.{name}": getattr(options, name) for name in _FILE}
    for column, own in columns.items():
        found |= _of_column(column, own)
    return {name: show_value(value) for name, value in found.items() if value is not None}


def _of_column(column: str, own: ParquetColumnOptions) -> dict[str, object]:
    return {f"format.{name}::{column}": getattr(own, name) for name in _COLUMN}
