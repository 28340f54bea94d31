"""A stage as text: its operators as DataFusion displays them, with exchange sources named, and what its tasks read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.plan.feed_scans import is_fed
from sparkfusion.plan.functions import register_spark_functions
from sparkfusion.plan.isolate import keep_apart, restrict
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import ExchangeKind, Stage, StageGraph
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.wire import PlanNode, copy_of, decode, encode, file_scan_conf, kind, rewrite, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import union
from sparkfusion.plan.wire.tree import children
from sparkfusion.urls import LOCAL_STORE

_EXCHANGE_LINE = re.compile(r"DataSourceExec: .*?sparkfusion-exchange/(\d+)/.*")
_FEED_LINE = re.compile(r"DataSourceExec: file_groups=.*?\[\[?sparkfusion-feed/\d+/\d+/([^\],]*).*?\]\}(.*)")
_FILE_GROUPS = re.compile(r"file_groups=\{(\d+) groups?: \[.*?\]\}")


def operator_lines(plan: bytes, graph: StageGraph) -> list[str]:
    """The plan's operators, one a line, indented by two spaces a level.

    Never raises: a plan that DataFusion does not decode by itself is shown by the names of its nodes.
    """
    root = decode(plan)
    context = SessionContext()
    register_spark_functions(context, graph.spark_functions)
    try:
        text = ExecutionPlan.from_bytes(context, encode(_decodable(copy_of(root)))).display_indent()
    except Exception:
        return list(_names(root, 0))
    lines = [_readable(line, graph) for line in text.splitlines() if line.strip()]
    return _with_interleaves(lines, root)


def _decodable(root: PlanNode) -> PlanNode:
    """The plan in a form that can be decoded for display: without object stores, and without interleaves, which require
    a declared partitioning."""

    def simplify(node: PlanNode) -> PlanNode | None:
        conf = file_scan_conf(node)
        if conf is not None and conf.object_store_url:
            conf.object_store_url = LOCAL_STORE
        return union(node.interleave.inputs) if kind(node) == "interleave" else None

    return rewrite(root, simplify)


def _with_interleaves(lines: list[str], root: PlanNode) -> list[str]:
    """Rename the unions that stand for interleaves. Lines and nodes both have parents first."""
    unions = (kind(node) for node in walk(root) if kind(node) in ("union", "interleave"))

    def rename_union(line: str) -> str:
        is_interleave = line.lstrip().startswith("UnionExec") and next(unions, "") == "interleave"
        return line.replace("UnionExec", "InterleaveExec", 1) if is_interleave else line

    return [rename_union(line) for line in lines]


def _names(node: PlanNode, depth: int) -> Iterator[str]:
    yield "  " * depth + "".join(word.capitalize() for word in kind(node).split("_")) + "Exec"
    for child in children(node):
        yield from _names(child, depth + 1)


def _readable(line: str, graph: StageGraph) -> str:
    found = _EXCHANGE_LINE.search(line)
    fed = _FEED_LINE.search(line)
    if fed is not None:
        return line[: fed.start()] + f"FeedScan: {fed[1]}{fed[2]}"
    if found is None:
        return _FILE_GROUPS.sub(r"file_groups=\1", line)
    exchange = graph.exchange(int(found[1]))
    keys = f", keys=[{', '.join(exchange.keys)}]" if exchange.kind is ExchangeKind.SHUFFLE else ""
    return line[: found.start()] + f"ExchangeSource: {exchange.kind.value} of stage {exchange.producer}{keys}"


def task_leaves(stage: Stage) -> list[str]:
    """For each task, the files (and byte ranges) it scans; empty where it reads exchanges only."""
    root = decode(stage.plan)
    shown = []
    for task in range(stage.planned_tasks):
        plan = copy_of(root)
        below, width = plan.repartition.input if kind(plan) == "repartition" else plan, stage.partitions_per_task
        if not stage.whole and width == 1:
            restrict(below, (task,))
        elif not stage.whole:
            keep_apart(below, tuple(range(task * width, min((task + 1) * width, stage.task_count))))
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
