"""Write calls of functions. A function that is not listed here, nor the user's own, is refused by name."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sparkfusion.dialect.aggregate_functions import (
    AGGREGATES,
    WINDOW_FUNCTIONS,
    WITH_DISTINCT,
    AggregateCall,
    Writer,
    without_nulls,
)
from sparkfusion.dialect.conversions import arrow_type_of, convert
from sparkfusion.dialect.expressions import ExpressionWriter
from sparkfusion.dialect.function_forms import Form, Special, choose_form
from sparkfusion.dialect.literals import text_literal
from sparkfusion.dialect.nested_functions import NESTED_SPECIALS
from sparkfusion.dialect.number_functions import NUMBER_FORMS, NUMBER_SPECIALS
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.spark_parser import spark_text
from sparkfusion.dialect.text_functions import TEXT_FORMS, TEXT_SPECIALS
from sparkfusion.dialect.time_functions import TIME_FORMS, TIME_SPECIALS
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.windows import write_over

FORMS: dict[str, tuple[Form, ...]] = {**TEXT_FORMS, **NUMBER_FORMS, **TIME_FORMS}
SPECIALS: dict[str, Special] = {**TEXT_SPECIALS, **NUMBER_SPECIALS, **TIME_SPECIALS, **NESTED_SPECIALS}
GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")
CALLED_SPARK_FUNCTIONS = (
    "add_months", "base64", "bin", "bit_count", "crc32", "factorial", "hex", "last_day", "next_day", "sha1", "sha2",
    "soundex", "unhex",
)  # fmt: skip
"""Functions of DataFusion's Spark library that the forms above call."""

_CASTS = (
    "bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint", "string", "timestamp",
    "tinyint",
)  # fmt: skip
_WITHOUT_PARENTHESES: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
}


def function_names() -> list[str]:
    """Every function of Spark that the dialect has."""
    return sorted({*FORMS, *SPECIALS, *AGGREGATES, *WINDOW_FUNCTIONS, *GENERATORS, *_CASTS, "struct"})


def is_aggregate(node: exp.Expr) -> bool:
    """Whether an expression aggregates rows; calls inside subqueries and OVER do not count."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = [*node.args.get("partition_by", []), *node.this.iter_expressions()]
        return any(is_aggregate(each) for each in inner)
    if isinstance(node, exp.Any) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES):
        return True
    return any(is_aggregate(child) for child in node.iter_expressions())


class CallWriter:
    """Writes calls for one session: `own` are the names of the user's functions."""

    def __init__(self, own: Collection[str] = ()) -> None:
        self._own = own

    def write(self, writer: ExpressionWriter, node: exp.Expr) -> Typed:
        if isinstance(node, exp.Window):
            made = self._aggregate(writer, node.this, windowed=True)
            filtered = _filter_call(writer, node.this, made)
            return made.finish(f"{filtered} over ({write_over(writer, node)})")
        if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
            made = self._aggregate(writer, node)
            return made.finish(_filter_call(writer, node, made))
        name, arguments = _call(node)
        if name in AGGREGATES:
            made = self._aggregate(writer, node)
            return made.finish(_filter_call(writer, node, made))
        return self._scalar(writer, name, arguments)

    def _scalar(self, writer: ExpressionWriter, name: str, arguments: list[exp.Expr]) -> Typed:
        if name == "struct":
            return _struct(writer, arguments)
        if any(isinstance(each, exp.Lambda) for each in arguments):
            raise refuse(f"the function {name}", "DataFusion has no equivalent of higher-order functions")
        if name in GENERATORS:
            raise refuse(f"{name} inside an expression", "rows are made by a column of SELECT, or a LATERAL VIEW")
        if name in WINDOW_FUNCTIONS:
            raise wrong(f"{name} needs an OVER clause")
        if name in _CASTS and len(arguments) == 1:
            return convert(writer.write(arguments[0]), arrow_type_of(exp.DataType.build(name, dialect="spark")))
        values = [writer.write(each) for each in arguments]
        if name in SPECIALS:
            return SPECIALS[name](values)
        if name in FORMS:
            return choose_form(name, FORMS[name], values).write(name, values)
        if name in self._own:
            places = ", ".join(f"{{{n}}}" for n in range(len(values)))
            return writer.probe.build(f'"{name}"({places})', *values)
        raise refuse(f"the function {name}", "DataFusion has no equivalent with the same meaning")

    def _aggregate(self, writer: ExpressionWriter, node: exp.Expr, *, windowed: bool = False) -> AggregateCall:
        if isinstance(node, exp.Filter):
            return self._aggregate(writer, node.this, windowed=windowed)
        if isinstance(node, exp.IgnoreNulls):
            return without_nulls(self._aggregate(writer, node.this, windowed=windowed))
        if isinstance(node, exp.RespectNulls):
            return self._aggregate(writer, node.this, windowed=windowed)
        name, arguments = _call(node)
        table: dict[str, Writer] = {**AGGREGATES, **WINDOW_FUNCTIONS} if windowed else AGGREGATES
        if name not in table:
            raise refuse(f"the function {name}", "DataFusion has no equivalent with the same meaning")
        distinct = ""
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            distinct, arguments = "distinct ", arguments[0].expressions
            if name not in WITH_DISTINCT:
                raise refuse(f"{name} with DISTINCT", "DataFusion has no equivalent")
        if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return AggregateCall("count(*)", table[name]([text_literal("")], "").type)
        return table[name]([writer.write(each) for each in arguments], distinct)


def _filter_call(writer: ExpressionWriter, node: exp.Expr, made: AggregateCall) -> str:
    conditions = [made.only] if made.only is not None else []
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    if isinstance(node, exp.Filter):
        conditions.append(writer.row_filter(node.expression.this).sql)
    return f"{made.call} filter (where {' and '.join(conditions)})" if conditions else made.call


def _call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """The name and the arguments of a call, also of calls with keywords between their arguments."""
    if isinstance(node, exp.Any):
        return "any", [node.this.unnest()]
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), list(node.expressions)
    if type(node) in _WITHOUT_PARENTHESES:
        return _WITHOUT_PARENTHESES[type(node)], []
    if isinstance(node, exp.Extract):
        return "extract", [exp.Literal.string(node.name), node.expression]
    if isinstance(node, exp.Substring):
        return "substring", [each for each in (node.this, node.args.get("start"), node.args.get("length")) if each]
    if isinstance(node, exp.StrPosition):
        given = (node.args["substr"], node.this, node.args.get("position"))
        return "position", [each for each in given if each is not None]
    if isinstance(node, exp.Trim):
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "btrim")
        characters = [node.expression] if node.args.get("expression") is not None else []
        return name, [node.this, *characters] if name == "btrim" else [*characters, node.this]
    raise refuse(spark_text(node), "DataFusion has no equivalent")


def _struct(writer: ExpressionWriter, arguments: list[exp.Expr]) -> Typed:
    """`struct(a, 1 as b)`: fields have the names of columns and aliases, else `col1` and so on."""
    parts: list[Typed] = []
    for position, each in enumerate(arguments, start=1):
        named = isinstance(each, exp.Alias | exp.Column)
        parts.append(text_literal(each.alias_or_name if named else f"col{position}"))
        parts.append(writer.write(each.this if isinstance(each, exp.Alias) else each))
    return SPECIALS["named_struct"](parts)
