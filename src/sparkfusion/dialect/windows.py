"""Sort orders and windows. NULLs come first in ascending order and last in descending order."""

from __future__ import annotations

from sqlglot import exp

from sparkfusion.dialect.expressions import ExpressionWriter
from sparkfusion.dialect.known_parts import check_parts
from sparkfusion.dialect.refusals import refuse
from sparkfusion.dialect.spark_parser import spark_text


def write_over(writer: ExpressionWriter, window: exp.Window) -> str:
    """The text between the parentheses of OVER."""
    parts = []
    check_parts(window)
    if window.args.get("alias") is not None:
        raise refuse(f"the window {window.args['alias'].name}", "named windows are not supported", "write it out")
    if partition := window.args.get("partition_by"):
        parts.append("partition by " + ", ".join(writer.write(each).sql for each in partition))
    if order := window.args.get("order"):
        parts.append(
            "order by " + ", ".join(direction(writer.write(each.this).sql, each) for each in order.expressions)
        )
    if spec := window.args.get("spec"):
        parts.append(_frame(spec))
    return " ".join(parts)


def direction(sql: str, ordered: exp.Expr) -> str:
    """A sort key with its direction and the place of NULLs."""
    check_parts(ordered)
    word = "desc" if ordered.args.get("desc") else "asc"
    return f"{sql} {word} nulls {'first' if ordered.args.get('nulls_first') else 'last'}"


def _frame(spec: exp.Expr) -> str:
    check_parts(spec)
    edges = [_edge(spec, name) for name in ("start", "end")]
    kind = str(spec.args.get("kind") or "rows").lower()
    if kind == "range" and any(edge[0].isdigit() for edge in edges):
        raise refuse(spark_text(spec), "RANGE frames with an offset are not supported")
    return f"{kind} between {edges[0]} and {edges[1]}"


def _edge(spec: exp.Expr, name: str) -> str:
    value, side = spec.args.get(name), spec.args.get(f"{name}_side")
    if value is None:
        return "current row"
    text = value if isinstance(value, str) else value.name
    if text.upper() == "CURRENT ROW":
        return "current row"
    if text.upper() != "UNBOUNDED" and not text.isdigit():
        raise refuse(spark_text(spec), "offsets of frames have to be literals")
    return f"{text.lower()} {str(side).lower()}"
