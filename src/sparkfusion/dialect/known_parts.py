"""The parts of sqlglot's nodes that the dialect reads. Ignoring any other part would silently change the meaning of a
query."""

from __future__ import annotations

from sqlglot import exp

from sparkfusion.dialect.refusals import refuse
from sparkfusion.dialect.spark_parser import spark_text

_ALWAYS = {"this", "expression", "expressions"}
_BESIDES: dict[type[exp.Expr], set[str]] = {
    exp.Between: {"low", "high"},
    exp.Bracket: {"offset"},
    exp.CTE: {"alias"},
    exp.Case: {"ifs", "default"},
    exp.Cast: {"to", "_type"},
    exp.Column: {"table", "db", "catalog"},
    exp.Concat: {"safe"},
    exp.DPipe: {"safe"},
    exp.Div: {"typed", "safe"},
    exp.Group: {"all", "rollup", "cube", "grouping_sets"},
    exp.ILike: {"negate"},
    exp.Identifier: {"quoted"},
    exp.If: {"true", "false"},
    exp.In: {"query"},
    exp.Interval: {"unit"},
    exp.Join: {"on", "side", "kind", "using", "method"},
    exp.Lateral: {"view", "outer", "alias"},
    exp.Like: {"negate"},
    exp.Literal: {"is_string"},
    exp.Ordered: {"desc", "nulls_first"},
    exp.StrPosition: {"substr", "position"},
    exp.Subquery: {"alias", "with_", "order", "limit", "offset"},
    exp.Substring: {"start", "length"},
    exp.Trim: {"position"},
    exp.TryCast: {"to", "safe", "_type"},
    exp.Union: {"distinct", "by_name", "with_", "order", "limit", "offset"},
    exp.Intersect: {"distinct", "by_name", "with_", "order", "limit", "offset"},
    exp.Except: {"distinct", "by_name", "with_", "order", "limit", "offset"},
    exp.Values: {"alias"},
    exp.Window: {"partition_by", "order", "spec", "alias", "over"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
}


def check_parts(node: exp.Expr) -> None:
    """Raise if a node has a part that the dialect does not read."""
    known = _ALWAYS | _BESIDES.get(type(node), set())
    for name, value in node.args.items():
        if value and name not in known:
            raise refuse(f"{name.strip('_').upper()} in {spark_text(node)}", "DataFusion has no equivalent")
