"""Write expressions of Spark in DataFusion's dialect: names, literals, operators, conditions, nested values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from sparkfusion.dialect import typed_operators
from sparkfusion.dialect.conversions import arrow_type_of, coerce_all, convert
from sparkfusion.dialect.java_regex import checked_pattern
from sparkfusion.dialect.known_parts import check_parts
from sparkfusion.dialect.literals import number_literal, text_literal, value_literal
from sparkfusion.dialect.nested_values import access_field, access_item
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.scopes import Scope
from sparkfusion.dialect.spark_parser import spark_text, without_parentheses
from sparkfusion.dialect.time_units import add_interval
from sparkfusion.dialect.typed_sql import NULL, Typed, TypeProbe
from sparkfusion.dialect.value_types import STRING, kind_of
from sparkfusion.dialect.written import Written

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.NullSafeEQ: "is not distinct from", exp.NullSafeNEQ: "is distinct from",
}  # fmt: skip
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_SHIFTS: dict[type[exp.Expr], str] = {exp.BitwiseLeftShift: "<<", exp.BitwiseRightShift: ">>"}
_BINARY: dict[type[exp.Expr], Callable[[Typed, Typed], Typed]] = {
    exp.Div: typed_operators.divide,
    exp.IntDiv: typed_operators.divide_whole,
    exp.Mod: typed_operators.remainder,
}


class EnclosingQuery(Protocol):
    """The query around an expression, as far as the expression needs it. `values` are the values of parameters."""

    @property
    def values(self) -> Mapping[str, object]: ...

    def write_query(self, query: exp.Expr, outer: Scope | None) -> Written: ...

    def write_call(self, writer: ExpressionWriter, node: exp.Expr) -> Typed: ...


class ExpressionWriter:
    """Writes the expressions of one scope."""

    def __init__(self, scope: Scope, probe: TypeProbe, query: EnclosingQuery) -> None:
        self.scope = scope
        self.probe = probe
        self.query = query

    def write(self, node: exp.Expr) -> Typed:
        kind = type(node)
        check_parts(node)
        if kind in _COMPARISONS:
            return typed_operators.compare(self.write(node.this), self.write(node.expression), _COMPARISONS[kind])
        if kind in _BITS:
            return typed_operators.bitwise(self.write(node.this), self.write(node.expression), _BITS[kind])
        if kind in _SHIFTS:
            return typed_operators.shift(self.write(node.this), self.write(node.expression), _SHIFTS[kind])
        if kind in _BINARY:
            return _BINARY[kind](self.write(node.this), self.write(node.expression))
        method: Callable[[exp.Expr], Typed] | None = getattr(self, f"_{kind.__name__.lower()}", None)
        if method is not None:
            return method(node)
        return self.query.write_call(self, node)

    def row_filter(self, node: exp.Expr) -> Typed:
        """A condition that filters rows, in which NULL is like false.

        Spark does not compute the right side of AND and OR where the left side decides. DataFusion computes both sides
        for all rows of a batch, so a right side that may fail is put into a CASE. The CASE returns numbers, because
        DataFusion rewrites a CASE of booleans to AND and OR.
        """
        inner = _inside(node)
        if not isinstance(inner, exp.And | exp.Or):
            return self.condition(inner)
        first, *others = inner.flatten()
        made = self.row_filter(first).sql
        for each in others:
            side = self.row_filter(each).sql
            if not can_fail(each):
                made = f"({made} {'and' if isinstance(inner, exp.And) else 'or'} {side})"
            elif isinstance(inner, exp.And):
                made = f"({made} and (case when {made} then cast({side} as int) else 0 end = 1))"
            else:
                made = f"(case when {made} then 1 else cast({side} as int) end = 1)"
        return Typed(made, pa.bool_())

    def condition(self, node: exp.Expr) -> Typed:
        """An expression that must be a boolean."""
        made = self.write(node)
        if kind_of(made.type) not in ("boolean", "null"):
            raise wrong(f"{spark_text(node)} is {made.type}, where a boolean is expected")
        return convert(made, pa.bool_())

    # ---- names and literals

    def _column(self, node: exp.Expr) -> Typed:
        assert isinstance(node, exp.Column)
        return self.find_column([part.name for part in node.parts])

    def find_column(self, parts: list[str]) -> Typed:
        found, fields = self.scope.find(parts)
        for name in fields:
            found = access_field(found, name)
        return found

    def _identifier(self, node: exp.Expr) -> Typed:
        return self.find_column([node.name])

    def _literal(self, node: exp.Expr) -> Typed:
        return text_literal(node.name) if node.args.get("is_string") else number_literal(node.name)

    def _placeholder(self, node: exp.Expr) -> Typed:
        """The value of the parameter `:name`."""
        if not node.name or node.name not in self.query.values:
            hint = "write it as :name, and give its value: session.sql(text, {'name': value})"
            raise wrong(f"parameter {spark_text(node)} has no value", hint)
        return value_literal(node.name, self.query.values[node.name])

    def _rawstring(self, node: exp.Expr) -> Typed:
        return text_literal(node.name)

    def _null(self, _: exp.Expr) -> Typed:
        return NULL

    def _boolean(self, node: exp.Expr) -> Typed:
        return Typed("true" if node.this else "false", pa.bool_(), constant=True)

    def _paren(self, node: exp.Expr) -> Typed:
        return self.write(node.this)

    # ---- operators

    def _add(self, node: exp.Expr) -> Typed:
        return self._sum(node, "+")

    def _sub(self, node: exp.Expr) -> Typed:
        return self._sum(node, "-")

    def _sum(self, node: exp.Expr, sign: str) -> Typed:
        left, right = _inside(node.this), _inside(node.expression)
        if isinstance(left, exp.Interval) and sign == "+":
            left, right = right, left
        if isinstance(right, exp.Interval):
            return add_interval(self.write(left), right, sign)
        several = [each for each in right.flatten() if isinstance(each, exp.Interval)] if sign == "+" else []
        if isinstance(right, exp.Add) and len(several) == len(list(right.flatten())):
            return reduce(lambda made, each: add_interval(made, each, sign), several, self.write(left))
        return typed_operators.add(self.write(left), self.write(right), sign)

    def _mul(self, node: exp.Expr) -> Typed:
        return typed_operators.arithmetic(self.write(node.this), self.write(node.expression), "*")

    def _neg(self, node: exp.Expr) -> Typed:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number_literal("-" + node.this.name)
        return typed_operators.negate(self.write(node.this))

    def _bitwisenot(self, node: exp.Expr) -> Typed:
        value = self.write(node.this)
        ones = Typed("cast(-1 as tinyint)", pa.int8())
        return typed_operators.bitwise(value, ones, "^")

    def _interval(self, node: exp.Expr) -> Typed:
        raise refuse(spark_text(node), "intervals are only added to dates and timestamps, and taken from them")

    def _dpipe(self, node: exp.Expr) -> Typed:
        call = exp.Anonymous(this="concat", expressions=[node.this, node.expression])
        return self.query.write_call(self, call)

    def _concat(self, node: exp.Expr) -> Typed:
        return text_literal("".join(each.name for each in node.expressions))  # adjacent literals

    # ---- conditions

    def _and(self, node: exp.Expr) -> Typed:
        return self._logical(node, "and")

    def _or(self, node: exp.Expr) -> Typed:
        return self._logical(node, "or")

    def _logical(self, node: exp.Expr, word: str) -> Typed:
        sides = [self.condition(each).sql for each in node.flatten()]
        return Typed(f"({f' {word} '.join(sides)})", pa.bool_())

    def _not(self, node: exp.Expr) -> Typed:
        return Typed(f"(not {self.condition(node.this).sql})", pa.bool_())

    def _is(self, node: exp.Expr) -> Typed:
        value, what = self.write(node.this), node.expression
        if isinstance(what, exp.Null):
            return Typed(f"({value.sql} is null)", pa.bool_())
        if isinstance(what, exp.Boolean):
            return Typed(f"({self.condition(node.this).sql} is {'true' if what.this else 'false'})", pa.bool_())
        raise refuse(spark_text(node), "DataFusion has no equivalent")

    def _between(self, node: exp.Expr) -> Typed:
        value, low, high = self.write(node.this), self.write(node.args["low"]), self.write(node.args["high"])
        above, below = typed_operators.compare(value, low, ">="), typed_operators.compare(value, high, "<=")
        return Typed(f"({above.sql} and {below.sql})", pa.bool_())

    def _in(self, node: exp.Expr) -> Typed:
        value, query = self.write(node.this), node.args.get("query")
        if query is not None:
            return self._in_query(value, without_parentheses(query), spark_text(node))
        first, *others = coerce_all([value, *map(self.write, node.expressions)], spark_text(node))
        return Typed(f"({first.sql} in ({', '.join(each.sql for each in others)}))", pa.bool_())

    def _in_query(self, value: Typed, query: exp.Expr, what: str) -> Typed:
        inner = self.query.write_query(query, self.scope)
        column = inner.only_column(what)
        first, second = coerce_all([value, column], what)
        return Typed(f'({first.sql} in (select {second.sql} from ({inner.sql}) as "q"))', pa.bool_())

    def _exists(self, node: exp.Expr) -> Typed:
        if not isinstance(node.this, exp.Query):
            raise refuse("the function exists", "DataFusion has no equivalent of higher-order functions")
        return Typed(f"exists ({self.query.write_query(node.this, self.scope).sql})", pa.bool_())

    def _subquery(self, node: exp.Expr) -> Typed:
        inner = self.query.write_query(without_parentheses(node), self.scope)
        return Typed(f"({inner.sql})", inner.only_column(spark_text(node)).type)

    def _like(self, node: exp.Expr) -> Typed:
        return self._like_with(node, "like", "\\")

    def _ilike(self, node: exp.Expr) -> Typed:
        return self._like_with(node, "ilike", "\\")

    def _escape(self, node: exp.Expr) -> Typed:
        return self._like_with(node.this, "ilike" if isinstance(node.this, exp.ILike) else "like", node.expression.name)

    def _like_with(self, node: exp.Expr, word: str, escape: str) -> Typed:
        several = node.expression
        if isinstance(several, exp.Any | exp.All):
            items = several.this.expressions if isinstance(several.this, exp.Tuple) else [_inside(several.this)]
            joined = " or " if isinstance(several, exp.Any) else " and "
            made = joined.join(self._one_like(node.this, each, word, escape) for each in items)
        else:
            made = self._one_like(node.this, several, word, escape)
        return Typed(f"(not ({made}))" if node.args.get("negate") else f"({made})", pa.bool_())

    def _one_like(self, value: exp.Expr, pattern: exp.Expr, word: str, escape: str) -> str:
        left, right = convert(self.write(value), STRING), self.write(pattern)
        if kind_of(right.type) != "string" or not isinstance(right.value, str):
            raise refuse(f"{word.upper()} with a pattern that is not a literal", "escapes in it cannot be checked")
        return f"({left.sql} {word} {text_literal(_like_pattern(right.value, escape)).sql})"

    def _regexplike(self, node: exp.Expr) -> Typed:
        value, pattern = convert(self.write(node.this), STRING), self.write(node.expression)
        return Typed(f"regexp_like({value.sql}, {checked_pattern(pattern, 'RLIKE', finds=True).sql})", pa.bool_())

    # ---- choices

    def _if(self, node: exp.Expr) -> Typed:
        otherwise = node.args.get("false")
        values = [self.write(node.args["true"]), self.write(otherwise) if otherwise is not None else NULL]
        first, second = coerce_all(values, spark_text(node))
        (test,) = _escape_braces([self.condition(node.this).sql])
        made = f"case when {test} then {{0}} else {{1}} end"
        return _choose(node, made, [first, second])

    def _case(self, node: exp.Expr) -> Typed:
        branches, default = node.args["ifs"], node.args.get("default")
        values = [self.write(each.args["true"]) for each in branches]
        values = coerce_all([*values, self.write(default) if default is not None else NULL], "CASE")
        tests = [self._test(node, each.this) for each in branches]
        chosen = " ".join(f"when {test} then {{{n}}}" for n, test in enumerate(_escape_braces(tests)))
        return _choose(node, f"case {chosen} else {{{len(tests)}}} end", values)

    def _test(self, case: exp.Expr, test: exp.Expr) -> str:
        if case.this is None:
            return self.condition(test).sql
        return typed_operators.compare(self.write(case.this), self.write(test), "=").sql

    # ---- casts and nested values

    def _cast(self, node: exp.Expr) -> Typed:
        made = self.write(node.this)
        return convert(made, arrow_type_of(node.args["to"]))

    def _trycast(self, node: exp.Expr) -> Typed:
        """sqlglot uses this node for every CAST of Spark; only those marked as safe are TRY_CAST."""
        value, to = self.write(node.this), arrow_type_of(node.args["to"])
        return convert(value, to, tries=bool(node.args.get("safe")))

    def _bracket(self, node: exp.Expr) -> Typed:
        (index,) = node.expressions
        return access_item(self.write(node.this), self.write(index))

    def _dot(self, node: exp.Expr) -> Typed:
        return access_field(self.write(node.this), node.expression.name)


def _choose(node: exp.Expr, template: str, values: list[Typed]) -> Typed:
    """Write a CASE. If it has booleans and may fail, it is written with numbers, so that DataFusion does not compute it
    for all rows."""
    if values[0].type == pa.bool_() and can_fail(node):
        numbers = [f"cast({each.sql} as int)" for each in values]
        return Typed(f"({template.format(*numbers)} = 1)", pa.bool_())
    return Typed(template.format(*(each.sql for each in values)), values[0].type)


def _escape_braces(texts: list[str]) -> list[str]:
    return [text.replace("{", "{{").replace("}", "}}") for text in texts]


_DIVISIONS = (exp.Div, exp.IntDiv, exp.Mod)
_FAILING_CALLS = ("element_at", "make_date", "mod", "pmod", "split_part", "to_date", "to_timestamp")


def can_fail(node: exp.Expr) -> bool:
    """Whether an expression may fail for some rows; overflows do not count."""
    return any(
        isinstance(each, exp.Bracket)
        or (isinstance(each, _DIVISIONS) and not isinstance(each.expression, exp.Literal))
        or (isinstance(each, exp.Cast | exp.TryCast) and not isinstance(each.this, exp.Literal))
        or (isinstance(each, exp.Anonymous) and each.name.lower() in _FAILING_CALLS)
        for each in node.walk()
    )


def _inside(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _like_pattern(pattern: str, escape: str) -> str:
    r"""A pattern of LIKE with `\` as its escape. As in Spark, only `%`, `_` and the escape itself may be escaped.

    >>> _like_pattern("50!%!!\\", "!")
    '50\\%!\\\\'
    """
    made, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in ("%", "_", escape):
                raise wrong(f"the escape {escape!r} is not before '%', '_' or itself in {pattern!r}")
            made.append("\\" + escaped if escaped in "%_\\" else escaped)
        else:
            made.append("\\\\" if character == "\\" else character)
    return "".join(made)
