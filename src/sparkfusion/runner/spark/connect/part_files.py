"""On an executor: a partition of a registered DataFrame becomes a file of the query's store, and files become rows of
a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from sparkfusion.exchange.frames import FrameFileWriter, write_options
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.ids import SourceFile, TableId
from sparkfusion.runner.spark.casts import for_spark
from sparkfusion.runner.spark.connect.task_rows import answer_batch
from sparkfusion.runner.spark.inputs import bring_inputs
from sparkfusion.runner.spark.spark_task import StageWiring, ToUrl
from sparkfusion.runner.spark.spark_types import spark_arrow_schema
from sparkfusion.runner.spark.task_directories import task_directories
from sparkfusion.runner.spark.transfers import upload
from sparkfusion.worker.task import TaskInput


@dataclass(frozen=True)
class PartWriteSpec:
    """How the parts of one table are written: where, in which schema, and compressed how."""

    table: TableId
    schema: bytes
    compression: str
    wiring: StageWiring


@dataclass(frozen=True)
class WrittenPart:
    """The file with the rows of one partition."""

    partition: int
    path: str
    bytes: int


def write_part(spec: PartWriteSpec, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of this task's partition. Its answer says where the file is; a partition without rows has none.
    Every attempt writes a file of its own, and only that of the attempt whose answer arrives is read."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    partition, attempt = int(context.partitionId()), int(context.taskAttemptId())
    schema = pa.ipc.read_schema(pa.py_buffer(spec.schema))
    with task_directories(spec.wiring) as directories:
        path = directories.frames / f"table-{spec.table}-{partition}-{attempt}.arrow"
        writer: FrameFileWriter | None = None
        for batch in batches:
            if batch.num_rows and writer is None:
                writer = FrameFileWriter(path, schema, write_options(spec.compression))
            if batch.num_rows and writer is not None:
                writer.write(_in_schema(batch, schema))
        if writer is None:
            return
        file = FrameFile(str(path), partition, writer.rows, writer.close())
        if isinstance(spec.wiring.outlet, ToUrl):
            (file,) = upload((file,), spec.wiring.frames_url, Path(file.path).stem)
        written = WrittenPart(partition, file.path, file.bytes)
        yield answer_batch(json.dumps(asdict(written)).encode())


@dataclass(frozen=True)
class PartsToRead:
    """The files of a query's last tasks, by task, and the schema of their rows."""

    parts: tuple[tuple[SourceFile, ...], ...]
    wiring: StageWiring
    schema: bytes


def read_parts(spec: PartsToRead, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the rows of the parts whose numbers come in to Spark, in its types."""
    target = spark_arrow_schema(pa.ipc.read_schema(pa.py_buffer(spec.schema)))
    numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
    with task_directories(spec.wiring) as directories:
        inputs = tuple(TaskInput(0, number, spec.parts[number]) for number in numbers)
        for brought in bring_inputs(inputs, spec.wiring.frames_url, directories.directory("inputs")):
            for file in brought.files:
                with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                    for index in range(reader.num_record_batches):
                        yield for_spark(reader.get_batch(index), target)


def written_part_of(answer: bytes) -> WrittenPart:
    return WrittenPart(**json.loads(answer))


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the table's schema. Names of columns are numbers in the batch; names inside of types may differ."""
    columns = [
        column if column.type.equals(field.type, check_metadata=True) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
