"""What a query wants is offered to the provider, and following it never loses a row that the query needs."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, Session
from tests.suites.feeds import ONE_STORE, Scripted, assert_answers, feed_numbers, plain_answer, table_of, units_seen

pytestmark = ONE_STORE

SAME_PLANS = "what is offered is read from the plan, which is the same on every runner"
UNITS = range(12)
WHOLE = table_of(UNITS)


class Offered(Scripted):
    """Keeps what it was offered, and gives only units whose number the query may need."""

    def __init__(self, *, prune: bool = True) -> None:
        super().__init__(self._wanted)
        self._prune = prune

    def _wanted(self, partition: int | None, context: FeedContext) -> Iterator[int]:
        for unit, kept in zip(UNITS, context.keeps_each([{"unit": unit} for unit in UNITS]), strict=True):
            assert kept == context.keeps({"unit": unit})
            if kept or not self._prune:
                yield unit

    def filters(self) -> list[tuple[str | None, str | None, Any]]:
        (context,) = self.contexts
        return sorted(((each.column, each.operator, python(each.value)) for each in context.filters), key=str)


def python(value: Any) -> Any:
    """A value of Python; that it should be one from the start is a test of its own."""
    return value.as_py() if isinstance(value, pa.Scalar) else value


@pytest.fixture
def offered(session: Session) -> Offered:
    provider = Offered()
    feed_numbers(session, "f", provider, tasks=2)
    return provider


FILTERS: dict[str, tuple[str, list[tuple[Any, ...]], int]] = {
    "equal": ("unit = 3", [("unit", "=", 3)], 1),
    "turned around": ("3 = unit", [("unit", "=", 3)], 1),
    "range": ("unit >= 3 and unit < 6", [("unit", "<", 6), ("unit", ">=", 3)], 3),
    "between": ("unit between 2 and 4", [("unit", "<=", 4), ("unit", ">=", 2)], 3),
    "not equal": ("unit <> 3", [("unit", "!=", 3)], 11),
    "of another column": ("v > 5000", [("v", ">", 5000)], 12),
    "of a text": ("s = 's1' and unit <= 1", [("s", "=", "s1"), ("unit", "<=", 1)], 2),
    "one of some": ("unit in (1, 5, 7, 11)", [(None, None, None)], 4),
    "computed": ("unit % 4 = 1", [(None, None, None)], 3),
    "either": ("unit = 1 or unit > 9", [(None, None, None)], 3),
    "either of two columns": ("unit = 1 or v = 4000", [(None, None, None)], 12),
    "not null": ("s is not null", [(None, None, None)], 12),
    "none": ("true", [], 12),
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize(("condition", "parts", "units"), FILTERS.values(), ids=FILTERS)
def test_filters_are_offered(
    session: Session, offered: Offered, condition: str, parts: list[tuple[Any, ...]], units: int
) -> None:
    assert_answers(session, f"select v, s from f where {condition}", f=WHOLE)
    assert offered.filters() == parts
    assert all(each.text for each in offered.contexts[0].filters)
    assert offered.asked == units, "only what may be needed was given"


def test_a_filters_value_is_one_of_python(session: Session, offered: Offered) -> None:
    """Compared with what the provider knows, in plain Python: a scalar of Arrow is equal to no number."""
    session.sql("select v from f where unit = 3 and s = 's1'").collect()
    values = sorted((each.value for each in offered.contexts[0].filters), key=str)
    assert values == [3, "s1"]


TYPES: dict[str, tuple[pa.DataType, str, Any, Any]] = {
    "date": (pa.date32(), "c = date '2024-05-01'", datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)),
    "timestamp": (
        pa.timestamp("us"),
        "c = timestamp '2024-05-01 12:00:00'",
        datetime.datetime(2024, 5, 1, 12),
        datetime.datetime(2024, 5, 1, 13),
    ),
    "text": (pa.string(), "c = 'x'", "x", "y"),
    "text view": (pa.string_view(), "c = 'x'", "x", "y"),
    "large text": (pa.large_string(), "c = 'x'", "x", "y"),
    "category": (pa.dictionary(pa.int32(), pa.string()), "c = 'x'", "x", "y"),
    "float": (pa.float64(), "c = 1.5", 1.5, 2.5),
    "small": (pa.int8(), "c = 3", 3, 4),
    "decimal": (pa.decimal128(10, 2), "c = 1.25", Decimal("1.25"), Decimal("1.26")),
    "bool": (pa.bool_(), "c", True, False),
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("kind", TYPES)
def test_values_of_every_type_decide_what_is_kept(session: Session, kind: str) -> None:
    """As values of Python, and as texts, which is how they stand in paths."""
    type_, condition, wanted, other = TYPES[kind]
    kept: list[bool] = []

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        kept.extend(context.keeps_each([{"c": wanted}, {"c": other}, {"c": None}]))
        kept.extend(context.keeps_each([{"c": str(wanted)}, {"c": str(other)}]))
        yield 1

    def read(unit: object, context: object) -> pa.RecordBatch:
        values = pa.array([wanted, other, None], type_.value_type if pa.types.is_dictionary(type_) else type_)
        values = values.dictionary_encode() if pa.types.is_dictionary(type_) else values
        return pa.record_batch({"c": values})

    session.register_feed("f", Scripted(script), schema=pa.schema([("c", type_)]), reader=read)
    assert session.sql(f"select count(*) as n from f where {condition}").to_pylist() == [{"n": 1}]
    assert kept == [True, False, False, True, False]


def test_values_that_decide_nothing_are_kept(session: Session) -> None:
    kept: list[bool] = []

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        kept.extend(context.keeps(values) for values in ({}, {"v": 1}, {"no such column": 1}, {"unit": "no number"}))
        kept.extend(context.keeps_each([]))
        kept.extend(context.keeps_each([{"unit": 1, "v": 5}, {"v": 5}]))
        yield 3

    feed_numbers(session, "f", Scripted(script))
    assert session.sql("select count(*) as n from f where unit = 3").to_pylist() == [{"n": 3}]
    assert kept == [True] * 6


PROJECTIONS = {
    "some": ("select v, s from f", {"v", "s"}),
    "of a filter": ("select v from f where k = 1", {"v", "k"}),
    "none": ("select count(*) from f", set()),
    "all": ("select * from f", {"unit", "k", "v", "s"}),
    "below an aggregate": ("select k, sum(v) from f group by k", {"k", "v"}),
    "in an expression": ("select k + unit as x from f", {"k", "unit"}),
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize(("query", "columns"), PROJECTIONS.values(), ids=PROJECTIONS)
def test_the_projection_is_offered(session: Session, offered: Offered, query: str, columns: set[str]) -> None:
    session.sql(query).collect()
    assert set(offered.contexts[0].projection) == columns


def test_the_projection_is_not_confused_by_names_within_names(session: Session) -> None:
    seen: list[tuple[str, ...]] = []

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        seen.append(context.projection)
        yield 1

    schema = pa.schema([("a", pa.int64()), ("ab", pa.int64()), ("b", pa.int64())])
    session.register_feed("f", Scripted(script), schema=schema, reader=lambda unit, context: pa.table({"ab": [1]}))
    assert session.sql("select ab + 1 as x from f").to_pylist() == [{"x": 2}]
    assert session.sql("select ab as b from f").to_pylist() == [{"b": 1}]
    assert seen == [("ab",), ("ab",)]


LIMITS = {
    "plain": ("select v from f limit 5", 5),
    "with an offset": ("select v from f limit 5 offset 3", 8),
    "none": ("select v from f", None),
    "filtered": ("select v from f where k = 1 limit 5", None),
    "sorted": ("select v from f order by v limit 5", None),
    "aggregated": ("select count(*) from f limit 5", None),
    "distinct": ("select distinct k from f limit 5", None),
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize(("query", "limit"), LIMITS.values(), ids=LIMITS)
def test_the_limit_is_offered_where_any_rows_will_do(
    session: Session, offered: Offered, query: str, limit: int | None
) -> None:
    session.sql(query).collect()
    assert offered.contexts[0].limit in ((limit, None) if limit is not None else (None,))
    assert offered.contexts[0].tasks == 2
    assert offered.contexts[0].table == "f"


FOLLOWED = {
    "plain": "select count(*) as n from (select v from f limit 5) x",
    "with an offset": "select count(*) as n from (select v from f limit 5 offset 3) x",
    "twice": "select count(*) as n from (select v from f limit 5) x, (select v from f where k = 1 limit 2) y",
    "left join": "select count(*) as n from (select a.v from f a left join f b on a.v = b.v + 1 limit 7) x",
    "union": "select count(*) as n from (select v from f union all select v from f limit 50) x",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", FOLLOWED.values(), ids=FOLLOWED)
def test_following_the_limit_loses_no_row(session: Session, query: str) -> None:
    """The provider gives just as many rows as it was told are enough."""

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        rows = 0
        for unit in UNITS:
            if context.limit is not None and rows >= context.limit:
                return
            yield unit
            rows += 3

    feed_numbers(session, "f", Scripted(script), tasks=2)
    assert_answers(session, query, f=WHOLE)


SEVERAL_SCANS = {
    "different filters": "select a.v from f a join f b on a.k = b.k where a.unit = 1 and b.unit = 7",
    "a common filter": "select a.v from f a join f b on a.k = b.k where a.unit > 4 and b.unit > 4 and b.unit < 7",
    "one without": "select a.v from f a join f b on a.v = b.v where a.unit = 1",
    "in a union": "select v from f where unit = 1 union all select s from (select v as s from f where unit = 9) x",
    "in a subquery": "select v from f where unit = 1 and v < (select max(v) from f where unit = 9)",
    "correlated": "select v from f a where unit = 1 and exists (select 1 from f b where b.unit = 2 and b.k = a.k)",
    "outer join": "select a.v, b.v as w from f a left join f b on a.k = b.k and b.unit = 2 where a.unit = 1",
    "not in": "select v from f where unit = 1 and k not in (select k from f where unit = 2)",
    "cte": "with w as (select * from f where unit > 3) select a.v from w a join w b on a.v = b.v where b.unit < 8",
    "null side": "select a.v, b.v as w from f a left join f b on a.v = b.v + 1000 where b.v is null",
    "full join": "select a.v, b.v as w from f a full join f b on a.v = b.v + 1000 where a.unit = 3 or a.unit is null",
    "except": "select k from f where unit = 3 except select k from f where unit = 4",
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize("query", SEVERAL_SCANS.values(), ids=SEVERAL_SCANS)
def test_pruning_by_what_is_offered_loses_no_row(session: Session, offered: Offered, query: str) -> None:
    assert_answers(session, query, f=WHOLE)
    assert len(offered.contexts) == 2


def test_of_several_scans_only_what_they_share_is_offered(session: Session, offered: Offered) -> None:
    session.sql("select a.v from f a join f b on a.k = b.k where a.unit > 4 and b.unit > 4 and b.unit < 7").collect()
    for context in offered.contexts:
        assert [(each.column, each.operator, python(each.value)) for each in context.filters] == [("unit", ">", 4)]
    session.sql("select a.v from f a join f b on a.k = b.k where a.unit = 1 and b.unit = 7").collect()
    for context in offered.contexts[2:]:
        assert context.filters == ()
        assert context.limit is None
        assert set(context.projection) <= {"k", "v", "unit"}


def test_different_feeds_are_offered_their_own(session: Session) -> None:
    f, g = Offered(), Offered()
    feed_numbers(session, "f", f, tasks=2)
    feed_numbers(session, "g", g, tasks=2)
    query = "select f.v, g.s from f join g on f.k = g.k where f.unit = 1 and g.unit >= 10"
    assert_answers(session, query, f=WHOLE, g=WHOLE)
    assert (f.filters(), g.filters()) == ([("unit", "=", 1)], [("unit", ">=", 10)])
    assert (f.asked, g.asked) == (1, 2)


def test_filters_reach_through_views_and_frames(session: Session, offered: Offered) -> None:
    session.sql("create view w as select unit, v from f where unit > 2").collect()
    assert session.sql("select v from w where unit < 4").collect().num_rows == 3
    assert offered.filters() == [("unit", "<", 4), ("unit", ">", 2)]


NAMES = {
    "Events": "events",
    '"Events"': '"Events"',
    '"my events"': '"my events"',
    '"select"': '"select"',
    '"a.b"': '"a.b"',
}


@pytest.mark.runners("local", reason=SAME_PLANS)
@pytest.mark.parametrize(("name", "in_sql"), NAMES.items(), ids=NAMES)
def test_the_name_of_the_table_does_not_matter(session: Session, name: str, in_sql: str) -> None:
    """Names are read as everywhere in DataFusion; what is offered does not depend on them."""
    provider = Offered()
    feed_numbers(session, name, provider, tasks=2)
    assert units_seen(session.sql(f"select unit from {in_sql} where unit = 3").collect()) == {3: 3}
    assert provider.filters() == [("unit", "=", 3)]
    assert provider.asked == 1


def test_a_provider_that_prunes_nothing_changes_no_answer(session: Session) -> None:
    feed_numbers(session, "f", Offered(prune=False), tasks=2)
    query = "select v from f where unit = 3 or k = 2"
    assert session.sql(query).collect().num_rows == plain_answer(query, f=WHOLE).num_rows
