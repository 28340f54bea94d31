"""Which rows of the host's tables a plan asks for: never too few of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion.plan.conditions import Attribute, read_condition
from sparkfusion.plan.table_parts import TableHint, mark_tables
from sparkfusion.plan.table_reads import tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import NO_BROADCAST, context

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("small", pa.int8()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("price", pa.decimal128(15, 2)),
        ("at", pa.timestamp("us", "Europe/Prague")),
        ("clock", pa.timestamp("us")),
        ("raw", pa.binary()),
    ]
)


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[str], list[str]]:
    """What a query asks of the host's tables t and u, shown as explain does."""
    made = context(NO_BROADCAST)
    for number, name in enumerate(("t", "u")):
        home = tmp_path / str(number)
        home.mkdir()
        for part in range(2):
            (home / f"{part:06d}.arrow").write_bytes(b"-")
        made.deregister_table(name)
        made.register_arrow(name, str(home), schema=SCHEMA)

    def reads(sql: str) -> list[str]:
        root = decode(made.sql(sql).execution_plan().to_bytes(made))
        mark_tables(root, str(tmp_path), {0: TableHint("t", 1, 2), 1: TableHint("u", 1, 2)})
        return [str(read) for read in tables_read(root)]

    return reads


FILTERS = {
    "n = 5": "n = 5",
    "5 < n": "n > 5",
    "n != 5": "n != 5",
    "small >= 3": "small >= 3",
    "n between 3 and 9": "n >= 3 and n <= 9",
    "n in (1, 2, 3, 4, 5)": "n in (1, 2, 3, 4, 5)",
    "n not in (1, 2, 3, 4, 5)": "not (n in (1, 2, 3, 4, 5))",
    "s = 'a''b'": '''s = "a'b"''',
    "s like 'a%b_'": "s like 'a%b_'",
    "s not like '%b%'": "not (s like '%b%')",
    "s is null or n = 1": "s is null or n = 1",
    "s is not null": "not (s is null)",
    "flag": "flag",
    "not flag": "not (flag)",
    "day >= date '1970-01-11'": "day >= 10",
    "price <= 1.5": "price <= 1.50",
    "at > arrow_cast(1000000, 'Timestamp(us, \"Europe/Prague\")')": "at > 1000000",
    "clock = timestamp '1970-01-01T00:00:01.5'": "clock = 1500000",
    "raw = x'6162'": "raw = b'ab'",
    "x < 0.5": "x < 0.5",
    "x in (0.5, 1.5, 2.5, 3.5)": "x in (0.5, 1.5, 2.5, 3.5)",
    # the rest of a conjunction
    "n = 5 and abs(n) < 9": "n = 5",
    "n % 2 = 0 and s = 'a' and x + 1 > 2": "s = 'a'",
    "(n = 1 or s = 'b') and abs(n) = 3": "n = 1 or s = 'b'",
}


@pytest.mark.parametrize(("where", "shown"), FILTERS.items(), ids=FILTERS)
def test_conditions_that_are_asked(asked: Callable[[str], list[str]], where: str, shown: str) -> None:
    assert asked(f"select count(*) from t where {where}") == [f"t where {shown}"]


@pytest.mark.parametrize(
    "where",
    [
        "abs(n) = 5",
        "n = 5 or abs(n) = 5",
        "n = small",
        "n in (1, 2, 3, 4, null)",
        r"s like 'a\%b'",
        "s ilike 'a%'",
        "s ~ 'a.*b|c'",
        "x not in (0.5, 1.5, 2.5, 3.5)",
        "not (n = 5 and abs(n) = 6)",
        "cast(s as bigint) = 5",
        f"n in ({', '.join(map(str, range(0, 2002, 2)))})",
        "n = (select max(n) from u)",
    ],
)
def test_conditions_that_are_not_asked(asked: Callable[[str], list[str]], where: str) -> None:
    assert "t" in asked(f"select count(*) from t where {where}")


def test_a_wide_chain_is_read(asked: Callable[[str], list[str]]) -> None:
    wide = " or ".join(f"(n = {number} and s = '{number}')" for number in range(150))
    assert asked(f"select count(*) from t where {wide}")[0].count(" or ") == 149


def field(number: int, content: bytes) -> bytes:
    """A field of a message, encoded by hand: protobuf makes none that it would not read."""
    size, length = b"", len(content)
    while length > 127:
        size, length = size + bytes([length % 128 + 128]), length // 128
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


@pytest.mark.parametrize(("levels", "read"), [(20, True), (200, False)])
def test_conditions_that_nest_too_deeply_are_not_asked(levels: int, read: bool) -> None:
    column = condition = pb.Condition(column=pb.Column(name="flag")).SerializeToString()
    for _ in range(levels):
        condition = field(3, field(3, b"Or") + field(4, condition) + field(4, column))
    found = read_condition(condition, [Attribute("flag", 0)])
    assert (found.condition is not None) == found.exact == read


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select n from t limit 3", "t limit 3"),
        ("select n from t limit 3 offset 2", "t limit 5"),
        ("select n + 1 from t where s = 'a' limit 3", "t where s = 'a' limit 3"),
        # as many rows as that of those that Spark keeps may not be enough
        ("select n from t where x < 3 limit 3", "t where x < 3.0"),
        ("select n from t where s = 'a' and abs(n) = 3 limit 3", "t where s = 'a'"),
        # the filter must not choose among other rows
        ("select n from (select n, s from t limit 3) where s = 'a'", "t limit 3"),
        ("select count(*) from (select n from t limit 3)", "t limit 3"),
        ("select n from t order by n limit 3", "t"),
        ("select n, count(*) from t group by n limit 3", "t"),
        ("select sum(n) from t limit 3", "t"),
    ],
)
def test_limits(asked: Callable[[str], list[str]], sql: str, shown: str) -> None:
    assert asked(sql) == [shown]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select a.n from t a join t b on a.n = b.n where a.s = 'x' and b.s = 'y'", "t where s = 'x' or s = 'y'"),
        ("select a.n from t a join t b on a.n = b.n where a.s = 'x'", "t"),
        ("select n from t where s = 'x' union all select n from t where s = 'x'", "t where s = 'x'"),
        ("(select n from t limit 2) union all (select n from t limit 5)", "t limit 5"),
        ("(select n from t limit 2) union all (select n from t)", "t"),
        ("(select n from t where s = 'x' limit 2) union all (select n from t limit 2)", "t"),
    ],
)
def test_a_table_that_is_read_twice_gives_what_both_want(
    asked: Callable[[str], list[str]], sql: str, shown: str
) -> None:
    assert asked(sql) == [shown]


def test_columns_are_found_by_their_place(asked: Callable[[str], list[str]]) -> None:
    """Whatever the query calls them."""
    assert asked("select y from (select s as n, n as y, x from t) where n = 'a' and x > 1") == [
        "t where s = 'a' and x > 1.0"
    ]
