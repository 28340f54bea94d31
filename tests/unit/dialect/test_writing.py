"""What constructs of Spark's SQL become in DataFusion's dialect."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from datafusion import SessionContext

from sparkfusion.dialect.function_calls import FORMS, SPECIALS, function_names
from sparkfusion.dialect.query_writer import QueryWriter
from sparkfusion.dialect.refusals import NotInDialectError
from sparkfusion.dialect.typed_sql import TypeProbe

T = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.decimal128(7, 2)),
        ("s", pa.string()),
        ("Day", pa.date32()),
        ("a", pa.list_(pa.int32())),
        ("st", pa.struct([("x", pa.int32())])),
    ]
)


def find_table(names: Sequence[str]) -> tuple[str, pa.Schema]:
    return f'"{names[-1].lower()}"', T


def write(query: str) -> str:
    return QueryWriter(find_table, TypeProbe(SessionContext)).write(query)


def column(expression: str) -> str:
    """The text of one expression over the table `t`."""
    text = write(f"select {expression} as r from t")
    return text.removeprefix("select ").removesuffix(' as "r" from "t" as "t"')


@pytest.mark.parametrize(
    ("spark", "expected"),
    [
        ("I", '"t"."i"'),
        ("`day`", '"t"."Day"'),
        ("T.i", '"t"."i"'),
        ("5", "cast(5 as int)"),
        ("5000000000", "cast(5000000000 as bigint)"),
        ("1.50", "cast('1.50' as decimal(3, 2))"),
        ("1e3", "cast(1e3 as double)"),
        ('"it\'s"', "'it''s'"),
        ("i / 2", '(cast("t"."i" as double) / cast(cast(2 as int) as double))'),
        ("i div l", '(cast("t"."i" as bigint) / cast("t"."l" as bigint))'),
        ("i + i", 'cast(cast("t"."i" as bigint) + cast("t"."i" as bigint) as int)'),
        ("l * l", 'cast(cast("t"."l" as decimal(19, 0)) * cast("t"."l" as decimal(19, 0)) as bigint)'),
        ("m * m", '("t"."m" * "t"."m")'),
        ("d + d", '("t"."d" + "t"."d")'),
        ("i <=> l", '(cast("t"."i" as bigint) is not distinct from "t"."l")'),
        ("!(i == 1)", '(not ("t"."i" = cast(1 as int)))'),
        ("day > '2020-01-01'", '("t"."Day" > cast(\'2020-01-01\' as date))'),
        ("s || 'x'", '("t"."s" || \'x\')'),
        ("st.X", 'case when "t"."st" is not null then get_field("t"."st", \'x\') end'),
        ("s not like 'a%'", '(not (("t"."s" like \'a%\')))'),
        (
            "date_format(day, 'dd.MM.yyyy')",
            'to_char(arrow_cast("t"."Day", \'Timestamp(µs, Some("UTC"))\'), \'%d.%m.%Y\')',
        ),
        ("day + interval 2 months", '("t"."Day" + interval \'2 month\')'),
        ("size(a)", 'cast(cardinality("t"."a") as int)'),
        ("sum(l)", 'cast(sum(cast("t"."l" as decimal(19, 0))) as bigint)'),
        ("row_number() over (order by i desc)", 'cast(row_number() over (order by "t"."i" desc nulls last) as int)'),
    ],
)
def test_expression(spark: str, expected: str) -> None:
    assert column(spark) == expected


def test_sort_orders_say_where_nulls_are() -> None:
    assert write("select i from t order by i, l desc, d nulls last").endswith(
        'order by "i" asc nulls first, "t"."l" desc nulls last, "t"."d" asc nulls last'
    )


def test_limit_all_hints_and_distribution_are_left_out() -> None:
    plain = write("select i from t")
    assert write("select /*+ coalesce(1) */ i from t distribute by i limit all") == plain


def test_group_by_all_takes_what_does_not_aggregate() -> None:
    assert write("select i, s, count(*) from t group by all").endswith('group by "t"."i", "t"."s"')


def test_lateral_view_is_a_subquery_with_numbered_columns() -> None:
    text = write("select t.i, e from t lateral view explode(a) x as e")
    assert 'unnest("t"."a") as "item" from "t" as "t") as "__e1"' in text
    assert text.startswith('select "__e1"."c0" as "i", "__e1"."item" as "e" from (select "t"."i" as "c0", ')


def test_using_gives_one_column() -> None:
    text = write("select * except (l, d, m, s, day, a, st) from t full join t2 using (i)")
    assert (
        text
        == 'select coalesce("t"."i", "t2"."i") as "i" from "t" as "t" full join "t2" as "t2" on ("t"."i" = "t2"."i")'
    )


def test_inner_names_of_with_may_be_used_again() -> None:
    text = write(
        "with q as (select 1 as a) select * from (with q as (select 2 as a) select a from q) union all select a from q"
    )
    assert '"__w1" as (' in text
    assert '"__w2" as (' in text


def test_part_of_a_tree_that_nobody_reads_is_refused() -> None:
    with pytest.raises(NotInDialectError, match="SYMMETRIC"):
        write("select i between symmetric 3 and 1 from t")


def test_hidden_differences_of_function_names_are_known() -> None:
    """A function is either written by a form, or specially, not both; and every one has a lower-case name."""
    assert not FORMS.keys() & SPECIALS.keys()
    assert all(name == name.lower() for name in function_names())
