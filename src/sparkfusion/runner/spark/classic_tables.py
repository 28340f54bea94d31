"""DataFrames of a classic session as tables: their partitions go to the leaf tasks as Arrow, without passing the
driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyspark.sql.functions
from pyspark.sql import DataFrame, SparkSession

from sparkfusion.ids import TableId
from sparkfusion.plan.table_reads import TableRead, tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.spark.rows import RddPartitions, limit_partitions, mark_rows
from sparkfusion.runner.spark.spark_tables import LARGEST_GUESS, SparkTables, paths_of
from sparkfusion.runner.spark.spark_task import TableInput, table_mark


class ClassicTables(SparkTables):
    """The DataFrames of a classic session. Spark brings their rows to the tasks as Arrow messages."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session, pyspark.sql.functions)

    def rows(self, stage_plan: bytes) -> dict[TableId, Any]:
        """The rows of every table that a stage reads. Asked for once: Spark may divide them differently next time."""
        if not self._dataframes:
            return {}
        return {read.table: self._rows(read) for read in tables_read(decode(stage_plan))}

    def inputs(
        self, task_plan: bytes, rows: Mapping[TableId, Any]
    ) -> tuple[tuple[TableInput, ...], list[RddPartitions]]:
        """What one task of the stage reads of the tables, and where Spark finds the rows."""
        inputs: list[TableInput] = []
        pieces: list[RddPartitions] = []
        if not rows:
            return (), pieces
        for read in tables_read(decode(task_plan)):
            _, table = self._dataframes[read.table]
            inputs.append(TableInput(read.table, read.parts, table.schema.serialize().to_pybytes()))
            piece = _piece(rows[read.table], read.parts, table.parts)
            pieces += [piece] if piece is not None else []
        return tuple(inputs), pieces

    def _rows(self, read: TableRead) -> Any:
        """The table's rows for one stage: record-batch messages, each after a mark that names the table. With adaptive
        execution Spark runs the DataFrame's own stages now, under the caller's job tag."""
        dataframe: Any = self.narrow_table(read)
        batches = dataframe._jdf.toArrowBatchRdd().toJavaRDD()
        return mark_rows(self._session.sparkContext, table_mark(read.table), batches)

    def _is_own(self, dataframe: DataFrame) -> bool:
        return dataframe.sparkSession.sparkContext is self._session.sparkContext

    def _slots(self) -> int:
        return int(self._session.sparkContext.defaultParallelism)

    def _limit(self, dataframe: DataFrame, rows: int) -> DataFrame:
        return limit_partitions(dataframe, rows)

    def _reads_without_files(self, dataframe: DataFrame) -> bool:
        untyped: Any = dataframe
        leaves = untyped._jdf.queryExecution().analyzed().collectLeaves().mkString("\n").splitlines()
        relations = [leaf for leaf in leaves if leaf.startswith("Relation")]
        return any(leaf.startswith("RelationV2") for leaf in relations) or bool(relations and not paths_of(dataframe))

    def _guess_size(self, dataframe: DataFrame) -> int:
        untyped: Any = dataframe
        try:
            return int(str(untyped._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
        except Exception:
            return LARGEST_GUESS


def _piece(rows: Any, wanted: Sequence[int], parts: int) -> RddPartitions | None:
    """The partitions of a DataFrame that belong to these parts of its table; None if there are none.

    Part p of n has the p-th of n equal shares of the partitions, however many there turn out to be.
    """
    count = rows.getNumPartitions()
    found = [i for part in wanted for i in range(part * count // parts, (part + 1) * count // parts)]
    return RddPartitions(rows, tuple(sorted(found))) if found else None
