"""The methods of a DataFrame that write its rows to files and tables."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import datafusion
from datafusion.dataframe import DataFrameWriteOptions, ParquetWriterOptions

from sparkfusion.errors import UserError
from sparkfusion.runner.base import SparkWrite
from sparkfusion.session.dataframe_core import DataFrameCore
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.parquet_options import copy_options
from sparkfusion.session.spark_writes import write_spark_table
from sparkfusion.session.table_writes import write_table
from sparkfusion.session.write import WriteTarget, copy_tail
from sparkfusion.session.write_modes import WriteMode, check_mode, refuse_mode

_DEFAULT_LEVELS = {"zstd": 3, "gzip": 6, "brotli": 1}


class DataFrameWrites(DataFrameCore):
    """Methods of `sparkfusion.DataFrame`. Each runs the query now."""

    def write_parquet(
        self,
        path: str | PathLike[str],
        compression: str | datafusion.dataframe.Compression | ParquetWriterOptions = "zstd",
        compression_level: int | None = None,
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as Parquet: one file if the path has an extension, else a directory. Returns the row count.

        Args:
            mode: what to do if the target exists. "append" adds files to a directory. "overwrite" replaces the target
                when all rows are written; the query may read the data that it replaces. "error" raises. "ignore" writes
                nothing and returns 0. By default files are added to a directory, and a file is replaced.
            write_options: DataFusion's own options. With them DataFusion's writer is used. It has no modes and runs on
                a single node; the query runs twice, to count its rows.

        >>> orders.write_parquet("copy/", partition_by="city")
        3
        >>> orders.write_parquet("copy/", mode="overwrite")
        3
        """
        options = _parquet_options(compression, compression_level)
        if write_options is not None or options is None:
            return self._write_single_node(mode, "write_parquet", path, compression, compression_level, write_options)
        return self._write(WriteTarget("PARQUET", path, options, _names(partition_by)), mode)

    def write_parquet_with_options(
        self,
        path: str | PathLike[str],
        options: ParquetWriterOptions,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """`write_parquet` with all of DataFusion's options for Parquet files.

        DataFusion's writer is used, on a single node, if an option that has a default is None, or if one is about a
        column whose name is not in lower case: then the query cannot be written by tasks.

        >>> from datafusion import ParquetWriterOptions
        >>> orders.write_parquet_with_options("copy.parquet", ParquetWriterOptions(compression="snappy"))
        3
        """
        return self.write_parquet(path, options, write_options=write_options)

    def write_csv(
        self,
        path: str | PathLike[str],
        with_header: bool = False,
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as CSV, into a file or a directory as `write_parquet` does. Returns the row count.

        >>> orders.write_csv("copy.csv", with_header=True)
        3
        """
        if write_options is not None:
            return self._write_single_node(mode, "write_csv", path, with_header, write_options)
        options = {"format.has_header": str(with_header).lower()}
        return self._write(WriteTarget("CSV", path, options, _names(partition_by)), mode)

    def write_json(
        self,
        path: str | PathLike[str],
        *,
        partition_by: str | Sequence[str] = (),
        mode: WriteMode | None = None,
        write_options: DataFrameWriteOptions | None = None,
    ) -> int:
        """Write the rows as newline-delimited JSON, as `write_parquet` does. Returns the row count.

        >>> orders.write_json("copy.json")
        3
        """
        if write_options is not None:
            return self._write_single_node(mode, "write_json", path, write_options)
        return self._write(WriteTarget("JSON", path, {}, _names(partition_by)), mode)

    def write_table(
        self, table_name: str, write_options: DataFrameWriteOptions | None = None, *, mode: WriteMode = "append"
    ) -> int:
        """Write the rows to a table of the session. Columns are matched by name. Returns the row count.

        Args:
            write_options: DataFusion's own options. With them its writer adds to the table, on a single node.
            mode: "append" adds to the table. "overwrite" replaces its rows when all new rows are computed; the query
                may read the old ones. "error" raises if the table exists. "ignore" then writes nothing and returns 0.
                If there is no such table, "append" raises, and the other modes create one in memory.

        >>> orders.filter("price > 15").write_table("dear", mode="overwrite")
        2
        >>> session.table("dear").count()
        2
        """
        if write_options is not None:
            return self._write_single_node(mode if mode != "append" else None, "write_table", table_name, write_options)
        return write_table(self._engine, self._query, table_name, check_mode(mode))

    def write_spark_table(
        self,
        table_name: str,
        *,
        mode: WriteMode = "error",
        format: str | None = None,
        partition_by: str | Sequence[str] = (),
    ) -> None:
        """Write the rows to a table of Spark's catalog, if the session runs on Spark. The query is computed once.

        Args:
            table_name: as Spark's SQL spells it: `table`, `database.table` or `catalog.database.table`.
            mode: as in Spark. "append" adds rows; columns are matched by name.
                "overwrite" replaces the table; the query must not read it. "error" raises if it exists. "ignore" then
                writes nothing, and the query does not run.
            format: the format of a new table: "parquet", "orc" and so on. None means Spark's default.
            partition_by: columns by which a new table is partitioned.
        """
        write = SparkWrite(table_name, check_mode(mode), format, _names(partition_by))
        write_spark_table(self._engine, self._query, write)

    def _write(self, target: WriteTarget, mode: WriteMode | None) -> int:
        chosen = check_mode(mode) if mode is not None else None
        copied = self._engine.copy(self._query, copy_tail(target), chosen)
        written = self._engine.start(copied).read_all()
        return int(written.column(0)[0].as_py())

    def _write_single_node(self, mode: WriteMode | None, method: str, *args: Any) -> int:
        """Use DataFusion's own writer, for options that COPY does not have. It does not return a row count."""
        refuse_mode(mode)
        rows = self.count()
        call_datafusion(getattr(self._query.inner, method), *args)
        return rows


def _parquet_options(
    compression: str | datafusion.dataframe.Compression | ParquetWriterOptions, level: int | None
) -> dict[str, str] | None:
    """The options of a COPY; None if only DataFusion's writer knows them."""
    if isinstance(compression, ParquetWriterOptions):
        if level is not None:
            raise UserError(
                "pass either compression_level or ParquetWriterOptions, not both", hint="set the level in the options"
            )
        return copy_options(compression)
    name = compression if isinstance(compression, str) else str(compression.value)
    level = level if level is not None else _DEFAULT_LEVELS.get(name)
    return {"format.compression": name if level is None else f"{name}({level})"}


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)
