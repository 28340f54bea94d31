"""A statement that changes something is run by `sql`, at once and only once, whatever is done with its frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import udf

from sparkfusion import DataFrame, Session, UserError
from sparkfusion.verify import Outcome, verify_query
from tests.behaviour.parts import TOTAL

HERE = pytest.mark.runners("local", reason="no task has a part in it")
UPDATE = "update m set x = x * 2"
MERGE = "merge into m using t on m.x = t.v when matched then delete"
LOOKS: dict[str, Callable[[DataFrame], Any]] = {
    "collect": DataFrame.collect,
    "show": DataFrame.show,
    "count": DataFrame.count,
    "cache": lambda frame: frame.cache().collect(),
    "explain": DataFrame.explain,
    "analyze": lambda frame: frame.explain(analyze=True),
    "html": DataFrame._repr_html_,
    "distribution": DataFrame.distribution,
    "limit": lambda frame: frame.limit(1).collect(),
}
EXECUTE = "/* twice? */ execute add(3) -- no"
CHANGES = {
    "insert into m values (4)": [1, 2, 3, 4],
    "insert into m select x + 10 from m where x = 1": [1, 2, 3, 11],
    UPDATE: [2, 4, 6],
    "update m set x = 0 where x between 2 and 9": [0, 0, 1],
    "update m as a set x = 7 where a.x = 3": [1, 2, 7],
    "update m set x = 0 where false": [1, 2, 3],
    "delete from m where x = 1": [2, 3],
    "delete from m where x = 1 and x = 2": [1, 2, 3],
    "delete from m where null": [1, 2, 3],
    "delete from m": [],
}


@pytest.fixture
def session(session: Session) -> Session:
    session.sql("create table m as select column1 as x from (values (1), (2), (3))")
    session.sql("prepare add(bigint) as insert into m values ($1 * 2)")
    return session


def _rows(session: Session) -> list[int]:
    found: list[int] = sorted(session.sql("select x from m").to_pydict()["x"])
    return found


def _parts_of(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir()) if path.exists() else []


@pytest.mark.parametrize("statement", [*CHANGES, EXECUTE])
def test_a_change_is_made_once(session: Session, statement: str) -> None:
    expected = CHANGES.get(statement, [1, 2, 3, 6])
    changed = session.sql(statement)
    assert _rows(session) == expected
    counted = changed.to_pylist()
    if "update" not in statement:
        assert counted == [{"count": abs(len(expected) - 3)}]
    assert changed.to_pylist() == counted
    assert _rows(session) == expected


@HERE
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("statement", ["insert into m values (4)", UPDATE, "delete from m where x = 1"])
def test_looking_at_a_change_does_not_make_it_again(session: Session, statement: str, look: str) -> None:
    LOOKS[look](session.sql(statement))
    assert _rows(session) == CHANGES[statement]


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_a_copy_does_not_write_again(session: Session, tmp_path: Path, look: str) -> None:
    copied = session.sql(f"copy (select k, v from t) to '{tmp_path}/out' stored as parquet")
    written = _parts_of(tmp_path / "out")
    assert written
    LOOKS[look](copied)
    assert _parts_of(tmp_path / "out") == written
    assert copied.to_pylist() == [{"count": TOTAL}]


@HERE
@pytest.mark.parametrize("statement", [*CHANGES, "truncate table m", MERGE])
@pytest.mark.parametrize("explain", ["explain", "explain verbose", "explain format tree", "explain (format indent)"])
def test_explain_changes_nothing(session: Session, explain: str, statement: str) -> None:
    shown = session.sql(f"{explain} {statement}")
    assert "logical_plan" in shown.to_pydict()["plan_type"]
    shown.show()
    assert _rows(session) == [1, 2, 3]


def test_explain_of_a_change_says_where_it_is_made(session: Session) -> None:
    shown = dict(zip(*session.sql(f"explain {UPDATE}").to_pydict().values(), strict=True))
    assert shown["distributed_plan"].startswith("not distributed: UPDATE m changes a table")
    assert "Dml: op=[Update] table=[m]" in shown["logical_plan"]


@pytest.mark.parametrize("statement", ["insert into m values (4)", UPDATE, "delete from m where x = 1"])
def test_explain_analyze_makes_the_change_once(session: Session, statement: str) -> None:
    shown = session.sql(f"explain analyze {statement}")
    assert "changes a table" in shown.to_pydict()["plan"][-1]
    assert _rows(session) == CHANGES[statement]


def test_explain_of_a_change_with_a_correlated_subquery(session: Session) -> None:
    shown = session.sql("explain delete from m where x = (select max(n.x) from m as n where n.x < m.x)")
    assert shown.to_pydict()["plan"][-1].startswith("not distributed: DELETE FROM m")
    assert _rows(session) == [1, 2, 3]


def test_explain_of_a_copy_shows_its_stages_and_writes_nothing(session: Session, tmp_path: Path) -> None:
    copy = f"copy (select k, count(*) as n from t group by k) to '{tmp_path}/out' stored as parquet"
    shown = session.sql(f"explain {copy}").to_pydict()["plan"]
    assert shown[-1].startswith("distributed: 2 stages")
    assert "sparkfusion_copy" not in str(shown)
    assert not (tmp_path / "out").exists()
    session.sql(f"explain analyze {copy}")
    assert _parts_of(tmp_path / "out")


@HERE
@pytest.mark.parametrize(
    "condition",
    [
        "x in (select 2)",
        "x not in (select 2)",
        "exists (select 1 from t where t.v = m.x)",
        "x = (select max(v) from t)",
        "x = 1 and x in (select v from t)",
    ],
)
@pytest.mark.parametrize("change", ["delete from m", "update m set x = 0"])
def test_a_condition_that_datafusion_would_lose_is_refused(session: Session, change: str, condition: str) -> None:
    with pytest.raises(UserError, match=r"cannot run (DELETE FROM|UPDATE) m: "):
        session.sql(f"{change} where {condition}")
    assert _rows(session) == [1, 2, 3]


@HERE
def test_a_delete_with_a_limit_is_refused(session: Session) -> None:
    with pytest.raises(UserError, match="would change every row"):
        session.sql("delete from m limit 1")
    assert _rows(session) == [1, 2, 3]


@HERE
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("delete from t where k = 1", "cannot run DELETE FROM t: DELETE not supported"),
        ("update t set k = 1", "cannot run UPDATE t: UPDATE not supported"),
        ("truncate table m", "cannot run TRUNCATE TABLE m: "),
        (MERGE, "cannot run MERGE INTO m: "),
    ],
)
def test_a_change_that_a_table_does_not_take(session: Session, statement: str, words: str) -> None:
    for explained in ("", "explain analyze "):
        with pytest.raises(UserError, match=words) as caught:
            session.sql(explained + statement)
        assert caught.value.hint
    assert _rows(session) == [1, 2, 3]


@HERE
@pytest.mark.parametrize(
    "statement", ["insert into m values (4)", UPDATE, "delete from m", "drop table m", "execute add(1)"]
)
def test_only_queries_are_verified(session: Session, statement: str) -> None:
    result = verify_query(session, statement)
    assert result.outcome is Outcome.NOT_COMPARABLE
    assert "is not a query" in (result.reason or "")
    assert _rows(session) == [1, 2, 3]


@HERE
@pytest.mark.parametrize(
    "source",
    [
        "select 1 as a -- :)\n",
        "select 1 as a /* :) /* ) */ ) */",
        "select $$)$$ as a",
        "select $q$')$q$ as a",
        r"select e'\')' as a",
    ],
)
def test_copy_ends_at_its_own_parenthesis(session: Session, tmp_path: Path, source: str) -> None:
    session.sql(f"copy ({source}) to '{tmp_path}/out.parquet' stored as parquet -- done;\n;")
    copied = session.read_parquet(str(tmp_path / "out.parquet"))
    assert copied.to_pylist() == session.sql(source).to_pylist()


@HERE
def test_every_form_of_copy_is_run_at_once(session: Session, tmp_path: Path) -> None:
    session.sql('create table "My t" as select x from m')
    forms = {
        "table": "copy m to '{}'",
        "quoted": "copy \"My t\" to '{}'",
        "qualified": "COPY datafusion.public.m TO '{}';",
        "parameter": "copy $rows to '{}'",
        "close": "copy(select x from m)to '{}'",
    }
    for name, copy in forms.items():
        named: dict[str, Any] = {"rows": session.table("m")} if "$" in copy else {}
        session.sql(copy.format(tmp_path / f"{name}.parquet"), **named)
        assert session.read_parquet(tmp_path / f"{name}.parquet").count() == 3


@HERE
def test_a_function_called_copy_is_no_copy(session: Session) -> None:
    session.register_udf(udf(lambda values: values, [pa.int64()], pa.int64(), "immutable", "copy"))
    assert session.sql("explain select copy(x) from m").to_pydict()["plan_type"][-1] == "distributed_plan"


@HERE
def test_a_second_statement_is_never_taken_for_a_value(session: Session) -> None:
    for first in ("set sparkfusion.store_dir = '/x'", "insert into m values (4)", "select 1"):
        with pytest.raises(UserError, match="single SQL statement"):
            session.sql(f"{first}; drop table m")
    assert session.config["sparkfusion.store_dir"] != "/x"
    assert _rows(session) == [1, 2, 3]


@HERE
@pytest.mark.parametrize("inner", ["drop table m", "insert into m values (4)", UPDATE, "set sparkfusion.slots = 3"])
def test_only_a_query_is_copied(session: Session, tmp_path: Path, inner: str) -> None:
    for explain in ("", "explain "):
        with pytest.raises(UserError):
            session.sql(f"{explain}copy ({inner}) to '{tmp_path}/out.parquet'")
    assert _rows(session) == [1, 2, 3]
    assert session.config["sparkfusion.slots"] != "3"


@pytest.mark.parametrize(
    "statement",
    ["explain verbose", "explain format tree", "explain format indent", "explain analyze verbose", "explain (analyze)"],
)
def test_frames_of_explain_are_like_others(
    session: Session, statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = session.sql(f"{statement} select k, count(*) as n from t group by k")
    shown.show()
    assert "plan_type" in capsys.readouterr().out
    assert shown.count() == shown.collect().num_rows
    assert shown.to_pydict()["plan_type"][-1] == "distributed_plan"
    assert shown.to_pydict()["plan"][-1].startswith("distributed: 2 stages")


@HERE
def test_a_write_of_a_closed_session_is_refused(session: Session) -> None:
    session.close()
    with pytest.raises(UserError, match="the session is closed"):
        session.sql("insert into m values (4)")
