"""The plan format, message by message: which field holds what, for everything that may be in a distributed plan.

Field numbers are facts of the wire format (datafusion-proto 55). `wire.proto` names the fields that we change. This
table names all fields, so that a worker that checks another process's plan overlooks nothing. Everything else is
refused: nodes that write, nodes with plans that we do not cut, and expressions with plans or foreign bytes in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NUMBER = "number"
TEXT = "text"  # or bytes: nothing in it is a plan, an expression or a function
FUNCTION = "function"  # the definition of a function, which may be a pickle
MANY = "*"
"""At the end of a type: the field may be repeated."""

PLAN = "PlanNode"
EXPR = "Expr"
BINARY = "Binary"
OPERANDS = 4
ONE_OF = frozenset({PLAN, EXPR, "Partitioning", "ArrowType", "ScalarValue"})
"""Messages with only one field set, and optionally `expr_id`."""
EXPR_ID = 30


def _fields(**types: str) -> Mapping[int, str]:
    """The fields of a message: `_1="text"` means that field 1 holds text."""
    return MappingProxyType({int(name.removeprefix("_")): kind for name, kind in types.items()})


def _same(kind: str, *numbers: int) -> dict[str, str]:
    return {f"_{number}": kind for number in numbers}


_PLANS = {
    PLAN: _fields(
        _1="ParquetScan", _2="CsvScan", _3="Empty", _4="Projection", _6="GlobalLimit", _7="LocalLimit", _8="Aggregate",
        _9="HashJoin", _10="Sort", _11="CoalesceBatches", _12="Filter", _13="CoalescePartitions", _14="Repartition",
        _15="Window", _16="CrossJoin", _17="FileScan", _19="Inputs", _21="SortPreservingMerge", _22="NestedLoopJoin",
        _26="Inputs", _27="Empty", _30="Unnest", _31="FileScan", _32="Cooperative", _34="SortMergeJoin",
        _35="MemoryScan", _37="Buffer", _38="FileScan",
    ),
    "Empty": _fields(_1="Schema", _2=NUMBER),
    "Projection": _fields(_1=PLAN, _2="Expr*", _3="text*"),
    "GlobalLimit": _fields(_1=PLAN, _2=NUMBER, _3=NUMBER, _4="SortExpr*"),
    "LocalLimit": _fields(_1=PLAN, _2=NUMBER, _3="SortExpr*"),
    "Aggregate": _fields(
        _1="Expr*", _2="Expr*", _3=NUMBER, _4=PLAN, _5="text*", _6="text*", _7="Schema", _8="Expr*", _9="number*",
        _10="MaybeFilter*", _11="AggLimit", _12=NUMBER, _13=EXPR, _14="Schema",
    ),
    "MaybeFilter": _fields(_1=EXPR),
    "AggLimit": _fields(_1=NUMBER, _2=NUMBER),
    "HashJoin": _fields(
        _1=PLAN, _2=PLAN, _3="JoinOn*", _4=NUMBER, _6=NUMBER, _7=NUMBER, _8="JoinFilter", _9="number*", _10=NUMBER,
        _11=EXPR, _12=NUMBER,
    ),
    "NestedLoopJoin": _fields(_1=PLAN, _2=PLAN, _3=NUMBER, _4="JoinFilter", _5="number*"),
    "CrossJoin": _fields(_1=PLAN, _2=PLAN),
    "SortMergeJoin": _fields(
        _1=PLAN, _2=PLAN, _3="JoinOn*", _4=NUMBER, _5="JoinFilter", _6="SortOption*", _7=NUMBER
    ),
    "SortOption": _fields(_2=NUMBER, _3=NUMBER),
    "JoinOn": _fields(_1=EXPR, _2=EXPR),
    "JoinFilter": _fields(_1=EXPR, _2="JoinColumn*", _3="Schema"),
    "JoinColumn": _fields(_1=NUMBER, _2=NUMBER),
    "Sort": _fields(_1=PLAN, _2="Expr*", _3=NUMBER, _4=NUMBER, _5=EXPR),
    "SortPreservingMerge": _fields(_1=PLAN, _2="Expr*", _3=NUMBER),
    "CoalesceBatches": _fields(_1=PLAN, _2=NUMBER, _3=NUMBER),
    "CoalescePartitions": _fields(_1=PLAN, _2=NUMBER),
    "Filter": _fields(_1=PLAN, _2=EXPR, _3=NUMBER, _9="number*", _10=NUMBER, _11=NUMBER),
    "Repartition": _fields(_1=PLAN, _5="Partitioning", _6=NUMBER),
    "Window": _fields(
        _1=PLAN, _2="WindowExpr*", _5="Expr*", _7="Nothing", _8="SortedColumns", _9="Nothing"
    ),
    "SortedColumns": _fields(_6="number*"),
    "Inputs": _fields(_1="PlanNode*"),
    "Unnest": _fields(_1=PLAN, _2="Schema", _3="text*", _4="number*", _5=TEXT),
    "Cooperative": _fields(_1=PLAN),
    "Buffer": _fields(_1=PLAN, _2=NUMBER),
    "Partitioning": _fields(_1=NUMBER, _2="HashPartitioning", _3=NUMBER, _4="Range"),
    "HashPartitioning": _fields(_1="Expr*", _2=NUMBER),
    "Nothing": _fields(),
}  # fmt: skip

_SCANS = {
    "ParquetScan": _fields(_1="FileScanConf", _3=EXPR, _4=TEXT),
    "CsvScan": _fields(_1="FileScanConf", _2=NUMBER, _3=TEXT, _4=TEXT, _5=TEXT, _6=TEXT, _7=NUMBER, _8=NUMBER),
    "FileScan": _fields(_1="FileScanConf"),
    "FileScanConf": _fields(
        _1="FileGroup*", _2="Schema", _4="number*", _5="ScanLimit", _6="Statistics", _7="text*", _8=TEXT,
        _9="SortExprs*", _11=TEXT, _12=NUMBER, _13="ScanExprs", _15="Partitioning",
    ),
    "FileGroup": _fields(_1="PartitionedFile*"),
    "PartitionedFile": _fields(
        _1=TEXT, _2=NUMBER, _3=NUMBER, _4="ScalarValue*", _5="FileRange", _6="Statistics", _7="Schema"
    ),
    "FileRange": _fields(_1=NUMBER, _2=NUMBER),
    "ScanLimit": _fields(_1=NUMBER),
    "ScanExprs": _fields(_1="ScanExpr*"),
    "ScanExpr": _fields(_1=TEXT, _2=EXPR),
    "MemoryScan": _fields(_1="text*", _2="Schema", _3="number*", _4="SortExprs*", _5=NUMBER, _6=NUMBER),
}  # fmt: skip

_EXPRS = {
    EXPR: _fields(
        _1="Column", _2="ScalarValue", _3=BINARY, _4="AggregateExpr", _5="OfOne", _6="OfOne", _7="OfOne", _8="Case",
        _9="Cast", _10="SortExpr", _11="OfOne", _12="InList", _14="Cast", _15="WindowExpr", _16="ScalarFunction",
        _18="Like", _20="UnknownColumn", _21="Hash", _23="DynamicFilter", _24="HigherOrder", _25="Lambda",
        _26="LambdaVariable", _27="Range", _30=NUMBER,
    ),
    "Column": _fields(_1=TEXT, _2=NUMBER),
    "UnknownColumn": _fields(_1=TEXT),
    BINARY: _fields(_1=EXPR, _2=EXPR, _3=TEXT, _4="Expr*"),
    "OfOne": _fields(_1=EXPR),
    "Case": _fields(_1=EXPR, _2="WhenThen*", _3=EXPR),
    "WhenThen": _fields(_1=EXPR, _2=EXPR),
    "Cast": _fields(_1=EXPR, _2="ArrowType"),
    "InList": _fields(_1=EXPR, _2="Expr*", _3=NUMBER),
    "Like": _fields(_1=NUMBER, _2=NUMBER, _3=EXPR, _4=EXPR),
    "Hash": _fields(_1="Expr*", _2=NUMBER, _6=TEXT),
    "DynamicFilter": _fields(_1="Expr*", _2="Expr*", _3=NUMBER, _4=EXPR, _5=NUMBER),
    "ScalarFunction": _fields(_1=TEXT, _2="Expr*", _3=FUNCTION, _4="ArrowType", _5=NUMBER, _6=TEXT),
    "HigherOrder": _fields(_1=TEXT, _2="Expr*", _3=FUNCTION),
    "Lambda": _fields(_1="text*", _2=EXPR),
    "LambdaVariable": _fields(_1=NUMBER, _2="Field"),
    "AggregateExpr": _fields(
        _2="Expr*", _3=NUMBER, _4=TEXT, _5="SortExpr*", _6=NUMBER, _7=FUNCTION, _8=TEXT, _9=NUMBER
    ),
    "WindowExpr": _fields(
        _3=TEXT, _4="Expr*", _5="Expr*", _6="SortExpr*", _7="Frame", _8=TEXT, _9=FUNCTION, _10=TEXT, _11=NUMBER,
        _12=NUMBER,
    ),
    "Frame": _fields(_1=NUMBER, _2="Bound", _3="Bound"),
    "Bound": _fields(_1=NUMBER, _2="ScalarValue"),
    "SortExpr": _fields(_1=EXPR, _2=NUMBER, _3=NUMBER),
    "SortExprs": _fields(_1="SortExpr*"),
    "Range": _fields(_1="SortExpr*", _2="SplitPoint*"),
    "SplitPoint": _fields(_1="ScalarValue*"),
}  # fmt: skip

VALUES: Mapping[str, Mapping[int, str]] = {
    "Schema": _fields(_1="Field*", _2="text*"),
    "Field": _fields(_1=TEXT, _2="ArrowType", _3=NUMBER, _4="Field*", _5="text*"),
    "ArrowType": _fields(
        **_same("Nothing", *range(1, 16), 17, 18, 31, 32, 34, 35),
        **_same(NUMBER, 16, 19, 21, 22, 23),
        **_same(TEXT, 20, 24, 36, 40, 41),
        **_same("ListType", 25, 26, 27, 33, 43, 44),
        _28="StructType", _29="UnionType", _30="DictionaryType", _42="RunEndType",
    ),
    "ListType": _fields(_1="Field", _2=NUMBER),
    "StructType": _fields(_1="Field*"),
    "UnionType": _fields(_1="Field*", _2=NUMBER, _3="number*"),
    "DictionaryType": _fields(_1="ArrowType", _2="ArrowType"),
    "RunEndType": _fields(_1="Field", _2="Field"),
    "ScalarValue": _fields(
        **_same(NUMBER, 1, *range(4, 15), 21, 24, 35, 36, 37, 38),
        **_same(TEXT, 2, 3, 15, 20, 22, 23, 25, 26, 28, 29, 30, 31, 34, 39, 43, 44),
        **_same("NestedValue", 16, 17, 18, 32, 41, 46, 47),
        _27="DictionaryValue", _33="ArrowType", _42="UnionValue", _45="RunEndValue",
    ),
    "NestedValue": _fields(_1=TEXT, _2=TEXT, _3="Schema", _4="text*"),
    "DictionaryValue": _fields(_1="ArrowType", _2="ScalarValue"),
    "RunEndValue": _fields(_1="Field", _2="Field", _3="ScalarValue"),
    "UnionValue": _fields(_1=NUMBER, _2="ScalarValue", _3="UnionField*", _4=NUMBER),
    "UnionField": _fields(_1=NUMBER, _2="Field"),
    "Statistics": _fields(_1="Precision", _2="Precision", _3="ColumnStats*"),
    "ColumnStats": _fields(**_same("Precision", 1, 2, 3, 4, 5, 6)),
    "Precision": _fields(_1=NUMBER, _2="ScalarValue"),
}  # fmt: skip

"""Types and values: they nest, but hold no plan, no path, no expression and no function."""

FORMAT: Mapping[str, Mapping[int, str]] = MappingProxyType({**_PLANS, **_SCANS, **_EXPRS, **VALUES})
