"""Describe a stage in plain words, for progress: `read lineitem and stage 1; filter, join, aggregate`."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Sequence

from sparkfusion.plan.feed_scans import is_fed
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import Head, Stage, StageGraph
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import PlanNode, decode, file_scan_conf, kind, walk

_VERBS = {
    "filter": "filter",
    "hash_join": "join",
    "cross_join": "join",
    "nested_loop_join": "join",
    "sort_merge_join": "join",
    "aggregate": "aggregate",
    "window": "compute windows",
    "sort": "sort",
    "sort_preserving_merge": "merge",
    "global_limit": "limit",
    "local_limit": "limit",
    "unnest": "unnest",
    "union": "combine",
    "interleave": "combine",
}
_IN_MEMORY = {"memory_scan": "rows in memory", "generate_series": "generated rows"}
_OF_A_SESSION = re.compile(r"(?:^|/)sparkfusion-\d+-")
_MOST_TABLES = 3


def describe_stage(stage: Stage, graph: StageGraph) -> str:
    """Describe a stage. This decodes the stage's plan, so call it once for each stage that is shown."""
    said = _describe(stage.plan, graph)
    return f"the whole query: {said}" if stage.whole else said


def describe_head(head: Head, graph: StageGraph) -> str:
    return _describe(head.plan, graph) if head.plan is not None else "pass rows on"


def _describe(plan: bytes, graph: StageGraph) -> str:
    nodes = list(walk(decode(plan)))
    tables = list(dict.fromkeys(name for node in nodes if (name := _source(node)) is not None))
    producers = {graph.exchange(exchange).producer for node in nodes if (exchange := exchange_of(node)) is not None}
    read = [*_first(tables), *_stages(sorted(producers))]
    verbs = list(dict.fromkeys(_VERBS[kind(node)] for node in reversed(nodes) if kind(node) in _VERBS))
    return "; ".join(part for part in (f"read {_list(read)}" if read else "", ", ".join(verbs)) if part) or "compute"


def _source(node: PlanNode) -> str | None:
    """The name of the table or feed that a scan reads; None for exchange sources and for nodes that are not scans."""
    conf = file_scan_conf(node)
    if conf is None:
        return _IN_MEMORY.get(kind(node))
    if exchange_of(node) is not None:
        return None
    parts = parts_of(node)
    if parts:
        return parts[0].name
    files = [file for group in conf.file_groups for file in group.files]
    if any(is_fed(file) for file in files):
        return f"feed {files[0].path.rsplit('/', 1)[-1]}"
    return name_files(sorted({file.path for file in files}))


def name_files(paths: Sequence[str]) -> str:
    """Guess the name of a table from its files: a plan does not have the name. Mostly a directory or a file has the
    same name.

    >>> name_files(["data/lineitem/0.parquet", "data/lineitem/1.parquet"]), name_files(["data/orders.parquet"])
    ('lineitem', 'orders')
    >>> name_files(["lake/events/day=1/a.parquet"]), name_files(["data/part/part-0.parquet"]), name_files([])
    ('events', 'part', 'no files')
    """
    if not paths:
        return "no files"
    if _OF_A_SESSION.search(paths[0]):
        return "rows in memory"
    if len(paths) == 1:
        home, _, file = paths[0].rpartition("/")
        stem = file.split(".")[0]
        if stem and not (stem[0].isdigit() or stem.startswith("part-") or "=" in home.rpartition("/")[2]):
            return stem
    else:
        home = os.path.commonpath(paths) if len({path.startswith("/") for path in paths}) == 1 else ""
    steps = [step for step in home.split("/") if step and "=" not in step]
    return steps[-1] if steps else "files"


def _first(names: Sequence[str]) -> list[str]:
    more = len(names) - _MOST_TABLES
    return [*names[:_MOST_TABLES], f"{more} more tables"] if more > 1 else list(names)


def _stages(producers: Sequence[int]) -> list[str]:
    """
    >>> _stages([3]), _stages([1, 2]), _stages(range(1, 9))
    (['stage 3'], ['stages 1 and 2'], ['8 stages'])
    """
    if len(producers) > _MOST_TABLES:
        return [f"{len(producers)} stages"]
    return [f"stage{'s' if len(producers) > 1 else ''} {_list(map(str, producers))}"] if producers else []


def _list(words: Iterable[str]) -> str:
    """
    >>> _list(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
