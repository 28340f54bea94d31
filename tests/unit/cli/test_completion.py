"""What Tab offers in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import sparkfusion
from sparkfusion.cli.shell.backslash import COMMANDS
from sparkfusion.cli.shell.completion import SqlCompleter
from sparkfusion.cli.shell.known_names import KnownNames, NameCache, read_names

NAMES = KnownNames(
    columns={"orders": ["id", "day", "Total"], "people": ["id", "name"], "Mixed": []},
    functions=("date_trunc", "sum"),
    settings=("sparkfusion.slots", "sparkfusion.store", "datafusion.execution.batch_size"),
)


def offered(text: str, names: KnownNames = NAMES) -> list[str]:
    completer = SqlCompleter(lambda: names, {name: each.takes for each in COMMANDS for name in each.names})
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select * from ", ["orders", "people", '"Mixed"']),
        ("select * from orders, p", ["people"]),
        ("select * from orders join p", ["people"]),
        ("set sparkfusion.s", ["sparkfusion.slots", "sparkfusion.store"]),
        ("show datafusion.", ["datafusion.execution.batch_size"]),
        ("select * from orders where da", ["day", "date", "date_trunc"]),
        ("select * from orders where na", ["natural"]),  # a column of another table
        (r"\fo", [r"\format"]),
        (r"\format nd", ["ndjson"]),
        (r"\d pe", ["people"]),
        (r"\timing o", ["on", "off"]),
        (r"\connect sp", ["spark"]),
    ],
)
def test_what_is_offered(text: str, expected: list[str]) -> None:
    assert offered(text) == expected


def test_columns_come_before_keywords_and_need_their_quotes() -> None:
    assert offered("select * from orders where ")[:3] == ["id", "day", '"Total"']


def test_paths_inside_quotes(tmp_path: Path) -> None:
    (tmp_path / "sales.parquet").touch()
    assert offered(f"select * from '{tmp_path}/sa") == ["les.parquet"]
    assert offered(rf"\i {tmp_path}/sa") == ["les.parquet"]


def test_names_of_a_session_are_read_again_after_a_statement() -> None:
    with sparkfusion.connect() as session:
        cache = NameCache(lambda: session)
        assert cache.names().columns == {}
        session.sql("create table t as select 1 as a, 2 as b")
        assert cache.names().columns == {}
        cache.forget()
        assert cache.names().columns == {"t": ["a", "b"]}
        assert "sum" in cache.names().functions
        assert "sparkfusion.slots" in cache.names().settings
        session.sql("set datafusion.catalog.information_schema = false")
        assert read_names(session).columns == {}  # without an error in the face of a person who types
