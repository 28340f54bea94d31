"""The inputs of a task on an executor.

For rows of Spark's shuffle: which attempt wrote them, and whether they may be read. For files: their local paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sparkfusion.errors import ExternalError, LostInputError
from sparkfusion.ids import SourceFile, TableId
from sparkfusion.plan.table_parts import bind_tables
from sparkfusion.runner.spark.chunks import ChunkSpool, Origin
from sparkfusion.runner.spark.spark_task import CarriedInput, PartFile, ProducerAttempt, RowInput
from sparkfusion.runner.spark.transfers import download
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.message import unpack
from sparkfusion.worker.task import TaskInput


@dataclass(frozen=True)
class TakenRows:
    """Files of a task's inputs, and how many producer tasks Spark had to run again for them."""

    inputs: tuple[TaskInput, ...]
    recomputed: int


def take_rows(expected: Sequence[RowInput], spool: ChunkSpool) -> TakenRows:
    """Find every expected input among the rows that came. Raises if one is incomplete.

    Raises `LostInputError` if an input is not the committed one and may have other rows: Spark ran its task again.
    """
    inputs: list[TaskInput] = []
    recomputed = 0
    for each in expected:
        origins = [(source, _origin(each, source, spool)) for source in each.sources]
        recomputed += sum(source.spark_attempt not in (None, origin.spark_attempt) for source, origin in origins)
        inputs += [TaskInput(each.exchange, group, _files(each, group, origins, spool)) for group in each.groups]
    return TakenRows(tuple(inputs), recomputed)


def bring_inputs(inputs: tuple[TaskInput, ...], url: str, directory: Path) -> tuple[TaskInput, ...]:
    """The same inputs with their files on this machine: unchanged, or downloaded from below `url`."""
    if not url:
        return inputs
    files = list(dict.fromkeys(file for each in inputs for file in each.files))
    here = dict(zip(files, download(files, url, directory), strict=True))
    return tuple(replace(each, files=tuple(here[file] for file in each.files)) for each in inputs)


def unpack_carried(
    inputs: tuple[TaskInput, ...], carried: Sequence[CarriedInput], directory: Path
) -> tuple[TaskInput, ...]:
    """The same inputs. Those that came with the task's stage are in files of this machine."""
    by_group = {(each.exchange, each.group): each.files for each in carried}

    def unpack(each: TaskInput) -> TaskInput:
        files = []
        for number, data in enumerate(by_group[each.exchange, each.group]):
            path = directory / f"carried-{each.exchange}-{each.group}-{number}.arrow"
            path.write_bytes(data)
            files.append(SourceFile(str(path), len(data)))
        return replace(each, files=tuple(files))

    return tuple(unpack(each) if (each.exchange, each.group) in by_group else each for each in inputs)


def bind_parts(plan: bytes, parts: Sequence[PartFile] | None, url: str, directory: Path) -> bytes:
    """The plan over the files of registered DataFrames, which are downloaded first if they are below a URL."""
    if parts is None:
        return plan
    files = [part.file for part in parts]
    here = download(files, url, directory) if url else files
    found = {(part.table, part.part): file for part, file in zip(parts, here, strict=True)}

    def file_of(table: TableId, part: int) -> SourceFile | None:
        return found.get((table, part))

    return bind_tables(plan, file_of)


def _origin(expected: RowInput, source: ProducerAttempt, spool: ChunkSpool) -> Origin:
    found = spool.origins(expected.exchange, source.task, source.attempt)
    if len(found) != 1:
        raise ExternalError(f"frames of stage {expected.producer}, task {source.task} did not arrive")
    if (error := spool.error(found[0])) is not None:
        _, fields, _ = unpack(error, len(error))
        raise error_of(fields)
    if not expected.repeatable and source.spark_attempt not in (None, found[0].spark_attempt):
        stage, task = expected.producer, source.task
        raise LostInputError(
            f"the output of stage {stage}, task {task} was lost, and running it again may give other rows",
            lost=[(stage, task, source.attempt)],
        )
    return found[0]


def _files(
    expected: RowInput, group: int, origins: Sequence[tuple[ProducerAttempt, Origin]], spool: ChunkSpool
) -> tuple[SourceFile, ...]:
    if expected.shuffled:
        return tuple(file for _, origin in origins for file in spool.files(origin, group))
    return tuple(file for source, origin in origins if source.task == group for file in spool.files(origin, 0))
