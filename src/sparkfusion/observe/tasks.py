"""What each task of a leaf stage reads."""

from __future__ import annotations

from sparkfusion.plan.feed_scans import is_fed
from sparkfusion.plan.isolate import restrict
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import Stage
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.wire import copy_of, decode, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb


def task_leaves(stage: Stage) -> list[str]:
    """For each task, the files (and byte ranges) it scans; empty where it reads exchanges only."""
    root = decode(stage.plan)
    shown = []
    for task in range(stage.task_count):
        plan = copy_of(root)
        if not stage.whole:
            restrict(plan.repartition.input if kind(plan) == "repartition" else plan, (task,))
        files = [
            _show_file(file)
            for node in walk(plan)
            if exchange_of(node) is None and (conf := file_scan_conf(node)) is not None
            for group in conf.file_groups
            for file in group.files
        ]
        shown.append(", ".join(files))
    return shown


def narrowed_tables(stage: Stage) -> list[str]:
    """The Spark DataFrames that Spark filters or limits before it sends rows, each with its filter and limit."""
    reads = tables_read(decode(stage.plan))
    return [str(read) for read in reads if read.condition is not None or read.limit is not None]


def _show_file(file: pb.PartitionedFile) -> str:
    name = file.path.rsplit("/", 1)[-1]
    if is_fed(file):
        return f"units of {name}"
    return f"{name}[{file.range.start}..{file.range.end}]" if file.HasField("range") else name
