"""Connect DataFrames as tables of queries, and results as Connect DataFrames."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from sparkfusion.errors import InternalError, QueryCancelledError, UserError
from sparkfusion.ids import SourceFile, TableId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.spark.casts import table_for_spark
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.connect.part_files import (
    PartsToRead,
    PartWriteSpec,
    WrittenPart,
    read_parts,
    write_part,
    written_part_of,
)
from sparkfusion.runner.spark.connect.task_rows import ANSWER, read_answers
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.runner.spark.spark_tables import LARGEST_GUESS, SparkTables
from sparkfusion.runner.spark.spark_task import PartFile, StageWiring
from sparkfusion.runner.spark.spark_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SIZE_LIMIT = "spark.sql.session.localRelationSizeLimit"
_USUAL_LIMIT = 64 << 20
_ESTIMATE = re.compile(r"sizeInBytes=([\d.E+]+) (\w*)B\b")
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}


class ComputedRows(Protocol):
    """A query that runs, and whose rows stay in the files of its tasks until `remove_files`."""

    @property
    def wiring(self) -> StageWiring:
        """How tasks find the files."""
        ...

    def wait(self) -> tuple[tuple[SourceFile, ...], ...]:
        """Wait for the end of the query, and return the files of each of its last tasks that has rows."""
        ...

    def run_with_query(self) -> AbstractContextManager[None]:
        """Around a job of this thread that reads the files. It is cancelled with the query."""
        ...

    def remove_files(self) -> None:
        """Cancel the jobs that are still running, and remove the files. Idempotent."""
        ...


class ConnectTables(SparkTables):
    """The DataFrames of a Connect session. When a stage reads one, a job writes its rows to the query's store first."""

    def __init__(self, application: ConnectApplication, start: Callable[[QueryJob], ComputedRows]) -> None:
        from pyspark.sql.connect import functions

        super().__init__(application.session, functions)
        self._application = application
        self._start = start

    def takes(self, graph: StageGraph) -> bool:
        """Not if the head has a LIMIT or OFFSET: then the rows must pass through this process, which counts them."""
        return graph.head.fetch is None and not graph.head.skip

    def to_spark(self, job: QueryJob, schema: pa.Schema) -> Any:
        """Run a query now, and let Spark keep its rows. They pass from executors to executors, not through here."""
        computed = self._start(job)
        try:
            parts = computed.wait()
            if not parts:
                return self.from_rows(schema.empty_table())
            work = functools.partial(read_parts, PartsToRead(parts, computed.wiring, schema.serialize().to_pybytes()))
            dataframe: Any = self._session.range(0, len(parts), 1, len(parts)).mapInArrow(work, spark_schema(schema))
            with computed.run_with_query():
                return dataframe.localCheckpoint()
        except Exception as error:
            raise spark_error(error, []) from error
        finally:
            computed.remove_files()

    def from_rows(self, rows: pa.Table) -> Any:
        """Rows of this process as a DataFrame: the client sends them to the server."""
        schema = spark_schema(rows.schema)
        sent = table_for_spark(rows)
        limit = self._size_limit()
        if sent.nbytes > limit:
            raise UserError(
                f"the result has {sent.nbytes:,} bytes, and Spark Connect takes at most {limit:,} from its client",
                hint="write the result with write_parquet to a place that Spark reaches, and use spark.read.parquet; "
                f"or raise {_SIZE_LIMIT}",
            )
        return self._session.createDataFrame(sent, schema)

    def _size_limit(self) -> int:
        try:
            return int(self._session.conf.get(_SIZE_LIMIT))
        except Exception:  # a server that does not know the setting
            return _USUAL_LIMIT

    def write_parts(self, stage_plan: bytes, wiring: StageWiring, compression: str) -> tuple[PartFile, ...] | None:
        """Write the tables that a stage reads to the store, a file for each part that has rows. None if it reads none.

        Called once for each stage, under the tag of the query.
        """
        reads = tables_read(decode(stage_plan)) if self._dataframes else ()
        if not reads:
            return None
        found: list[PartFile] = []
        for read in reads:
            _, table = self._dataframes[read.table]
            spec = PartWriteSpec(read.table, table.schema.serialize().to_pybytes(), compression, wiring)
            dataframe: Any = self.narrow_table(read).coalesce(table.parts)
            try:
                answers = list(read_answers(dataframe.mapInArrow(functools.partial(write_part, spec), ANSWER)))
            except Exception as error:
                failure = spark_error(error, [])
                if not isinstance(failure, QueryCancelledError):
                    failure.message = f"Spark could not compute table {read.name!r}: {failure.message}"
                raise failure from error
            found += _spread(read.table, [written_part_of(answer) for answer in answers], table.parts)
        return tuple(found)

    def parts_for(self, task_plan: bytes, parts: tuple[PartFile, ...] | None) -> tuple[PartFile, ...] | None:
        """Those of the stage's files that one of its tasks reads."""
        if parts is None:
            return None
        wanted: set[tuple[TableId, int]] = {
            (read.table, part) for read in tables_read(decode(task_plan)) for part in read.parts
        }
        return tuple(part for part in parts if (part.table, part.part) in wanted)

    def _is_own(self, dataframe: DataFrame) -> bool:
        return bool(getattr(dataframe.sparkSession, "session_id", None) == self._session.session_id)

    def _slots(self) -> int:
        return self._application.slots

    def _guess_size(self, dataframe: DataFrame) -> int:
        """From the text of `explain`, whose first estimate is that of the whole DataFrame; there is no other way."""
        untyped: Any = dataframe
        try:
            text = untyped._explain_string(mode="cost")
        except Exception:
            return LARGEST_GUESS
        found = _ESTIMATE.search(text)
        return int(float(found[1]) * _UNITS[found[2]]) if found is not None else LARGEST_GUESS

    def _reads_without_files(self, dataframe: DataFrame) -> bool:
        """Connect does not show what a DataFrame reads: it may be anything."""
        return True

    def _limit(self, dataframe: DataFrame, rows: int) -> DataFrame:
        """This many rows in all are enough: a plan that limits the rows of each of its partitions returns no more."""
        return dataframe.limit(rows)

    def _analyse(self, dataframe: DataFrame) -> None:
        """A Connect DataFrame is only a plan until its schema is asked for."""
        _ = dataframe.schema


def _spread(table: TableId, written: Sequence[WrittenPart], parts: int) -> list[PartFile]:
    """Give the files of a table to its parts: about as many to each task. There are no more files than parts."""
    if len(written) > parts:
        raise InternalError(f"a table of {parts} parts was written to {len(written)} files")
    ordered = sorted(written, key=lambda each: each.partition)
    return [
        PartFile(table, number * parts // len(ordered), SourceFile(each.path, each.bytes))
        for number, each in enumerate(ordered)
    ]
