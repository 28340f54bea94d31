from __future__ import annotations

import pytest

from sparkfusion.session.script import ScriptStatement, split


def texts(script: str) -> list[str]:
    return [statement.sql for statement in split(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1; select 2", ["select 1", "select 2"]),
        (" ;; select 1 ;;", ["select 1"]),
        ("select ';'; select 2", ["select ';'", "select 2"]),
        ("select 'it''s;'; select 2", ["select 'it''s;'", "select 2"]),
        ("select 'back\\'; select 2", ["select 'back\\'", "select 2"]),
        ('select ";" from "a"";b"; select 2', ['select ";" from "a"";b"', "select 2"]),
        ("select `;`; select 2", ["select `;`", "select 2"]),
        ("select 1 -- no; end\n+ 1; select 2", ["select 1 -- no; end\n+ 1", "select 2"]),
        ("select 1 /* no; /* nor; */ here; */ + 1; select 2", ["select 1 /* no; /* nor; */ here; */ + 1", "select 2"]),
        ("select $$;$$, $t$ $$;$$ $t$; select 2", ["select $$;$$, $t$ $$;$$ $t$", "select 2"]),
        ("select $1; select $2", ["select $1", "select $2"]),
        ("select 1 - -1; select 4 / 2 * 3", ["select 1 - -1", "select 4 / 2 * 3"]),
        ("-- only a comment; really", []),
        ("/* only */ ; -- comments\n;", []),
        ("-- first\nselect 1", ["select 1"]),
        ("/* a */ -- b\n 'x'; /* c */ set a = 1 /* d */", ["'x'", "set a = 1 /* d */"]),
        ("", []),
    ],
)
def test_semicolons_end_statements_outside_quotes_and_comments(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


@pytest.mark.parametrize(
    "script", ["select 'open; select 2", 'select "open; x', "select 1 /* open; x", "select $$open; x"]
)
def test_what_is_not_closed_stays_one_statement(script: str) -> None:
    assert texts(script) == [script]


def test_statements_know_their_line() -> None:
    assert split("select 1;\n\n  select\n 2;\nselect 3") == [
        ScriptStatement("select 1", 1),
        ScriptStatement("select\n 2", 3),
        ScriptStatement("select 3", 5),
    ]
