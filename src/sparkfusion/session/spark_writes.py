"""Write the rows of a query to a table of Spark's catalog, by Spark's own writer."""

from __future__ import annotations

from sparkfusion.errors import UserError
from sparkfusion.ids import TableId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.wire import decode, file_scan_conf, walk
from sparkfusion.runner.base import SparkWrite
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery


def write_spark_table(engine: Engine, query: LazyQuery, write: SparkWrite) -> None:
    """Let Spark write the rows of a query. The query runs once, or not at all if nothing is to be written.

    Spark removes a table before it overwrites it. So a query that reads the table and would run after that is refused.
    """
    spark = engine.on_spark(f"cannot write table {write.table!r}")
    if write.mode in ("error", "ignore") and spark.catalog.exists(write.table):
        if write.mode == "ignore":
            return
        raise UserError(
            f"cannot write table {write.table!r}: it exists already",
            hint='mode="append" adds rows to it, mode="overwrite" replaces it',
        )
    graph = engine.plan(query, with_rows=True).distribution.graph
    if write.mode == "overwrite" and graph is not None:
        files, tables = _reads(graph)
        if spark.reads_table(write.table, files, tables):
            raise UserError(
                f"cannot overwrite table {write.table!r}: the query reads it, and Spark removes it before that",
                hint="write to another table, or compute the rows first: df.cache().write_spark_table(…)",
            )
    spark.catalog.save(engine.to_spark(query), write)


def _reads(graph: StageGraph) -> tuple[frozenset[str], frozenset[TableId]]:
    """The files and the Spark tables that a query scans."""
    roots = [decode(stage.plan) for stage in graph.stages]
    confs = [conf for root in roots for node in walk(root) if (conf := file_scan_conf(node)) is not None]
    files = frozenset(file.path for conf in confs for group in conf.file_groups for file in group.files)
    return files, frozenset(read.table for root in roots for read in tables_read(root))
