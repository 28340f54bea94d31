"""A stage's plan as text: DataFusion's own display, with exchange sources named for what they are."""

from __future__ import annotations

import re

from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.plan.functions import register_spark_functions
from sparkfusion.plan.stage import ExchangeKind, StageGraph

_EXCHANGE_LINE = re.compile(r"DataSourceExec: .*?sparkfusion-exchange/(\d+)/.*")
_FEED_LINE = re.compile(r"DataSourceExec: file_groups=.*?\[\[?sparkfusion-feed/\d+/\d+/([^\],]*).*?\]\}(.*)")
_FILE_GROUPS = re.compile(r"file_groups=\{(\d+) groups?: \[.*?\]\}")


def operator_lines(plan: bytes, graph: StageGraph) -> list[str]:
    """The plan's operators, one a line, indented by two spaces a level."""
    context = SessionContext()
    register_spark_functions(context, graph.spark_functions)
    text = ExecutionPlan.from_bytes(context, plan).display_indent()
    return [_readable(line, graph) for line in text.splitlines() if line.strip()]


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
