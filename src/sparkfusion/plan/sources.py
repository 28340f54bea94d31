"""Exchange sources: the scans that the cut puts in place of other stages, and how they get their files.

An exchange source is an Arrow scan whose file groups hold one placeholder path each. A shuffle has a group for each
partition, a gather or broadcast a group for each producer task. `bind` replaces placeholders by files; the worker calls
it, because only the worker knows where the frames that it fetched are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sparkfusion.ids import ExchangeId, SourceFile
from sparkfusion.plan.wire import PlanNode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import arrow_scan

_PREFIX = "sparkfusion-exchange/"
_PLACEHOLDER = re.compile(rf"{_PREFIX}(\d+)/(\d+)")


Binding = Callable[[ExchangeId, int], Iterable[SourceFile]]
"""(exchange, group) → the committed files of that group: of a partition in a shuffle, of a producer task otherwise."""


def exchange_source(exchange: ExchangeId, groups: int, schema: bytes, width: int, computed: bytes = b"") -> PlanNode:
    """A scan of an exchange's frames.

    Args:
        computed: encoded expressions over the frames' columns, in place of the columns.
    """
    made = arrow_scan(schema, width)
    if computed:
        made.arrow_scan.base_conf.projection_exprs = computed
    set_groups(made, exchange, groups)
    return made


def set_groups(source: PlanNode, exchange: ExchangeId, groups: int) -> None:
    """Let an exchange source read this many groups, in place."""
    del source.arrow_scan.base_conf.file_groups[:]
    for group in range(groups):
        source.arrow_scan.base_conf.file_groups.add().files.add().path = f"{_PREFIX}{exchange}/{group}"


def exchange_of(node: PlanNode) -> ExchangeId | None:
    """Which exchange the node reads; None for anything but an exchange source."""
    if kind(node) != "arrow_scan":
        return None
    for group in node.arrow_scan.base_conf.file_groups:
        for file in group.files:
            if file.path.startswith(_PREFIX):
                return _parse(file.path)[0]
    return None


def exchanges_read(node: PlanNode) -> tuple[ExchangeId, ...]:
    """Every exchange read anywhere in the plan, each once, in the order of the plan."""
    found = (exchange_of(each) for each in walk(node))
    return tuple(dict.fromkeys(exchange for exchange in found if exchange is not None))


def groups_read(node: PlanNode) -> tuple[tuple[ExchangeId, int], ...]:
    """Every (exchange, group) that the plan reads, each once."""
    groups = [g for each in walk(node) if exchange_of(each) is not None for g in each.arrow_scan.base_conf.file_groups]
    return tuple(dict.fromkeys(_parse(file.path) for group in groups for file in group.files))


def bind(node: PlanNode, files_of: Binding) -> PlanNode:
    """Replace the placeholders of every exchange source by files, in place."""
    for each in walk(node):
        if exchange_of(each) is not None:
            _bind_scan(each.arrow_scan.base_conf, files_of)
    return node


def _bind_scan(conf: pb.FileScanConf, files_of: Binding) -> None:
    for group in conf.file_groups:
        places = [_parse(file.path) for file in group.files]
        del group.files[:]
        for exchange, index in places:
            for file in files_of(exchange, index):
                group.files.add(path=object_path(file.path), size=file.size)


def placeholder_of(path: str) -> tuple[ExchangeId, int] | None:
    """The exchange and the group that a path stands for; None for a file."""
    found = _PLACEHOLDER.fullmatch(path)
    return (int(found[1]), int(found[2])) if found is not None else None


def columns_read(conf: pb.FileScanConf) -> tuple[str, ...]:
    """The columns that a scan's projection uses. Expressions stay encoded, so their bytes are searched for encoded
    columns. A column found by mistake only costs time."""
    names = [column.name for column in pb.Schema.FromString(conf.schema).columns]
    if not conf.HasField("projection_exprs"):
        return tuple(names[index] for index in conf.projection) or tuple(names)
    encoded = [pb.Expr(column=pb.Column(name=name, index=index)) for index, name in enumerate(names)]
    found = conf.projection_exprs
    return tuple(name for name, expr in zip(names, encoded, strict=True) if expr.SerializeToString() in found)


def object_path(path: str) -> str:
    """An absolute path as DataFusion's local object store spells it."""
    return path.lstrip("/")


def _parse(path: str) -> tuple[ExchangeId, int]:
    exchange, group = path.removeprefix(_PREFIX).split("/")
    return int(exchange), int(group)
