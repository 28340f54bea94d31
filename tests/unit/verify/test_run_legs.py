"""Each outcome is reported, by sessions that are told to go wrong in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion.errors import VerificationError
from sparkfusion.plan.stage import Distribution
from sparkfusion.verify import CompareOptions, Outcome, Report, VerifyResult, assert_distributed_eq, verify_query
from tests.unit.verify.fakes import FakeSession, changed, failing, giving, graph

SQL = "select k, sum(x) as s from t group by k order by k"
RIGHT: dict[str, Any] = {"k": [1, 2], "s": [3.0, 3.0]}


def session(**wrong: Any) -> FakeSession:
    made = FakeSession(**wrong)
    made.register("t", {"k": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    return made


def first_row_twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 1), table])


def test_passed() -> None:
    result = verify_query(session(), SQL, name="sums")
    assert result.outcome is Outcome.PASSED
    assert result.passed
    assert (result.stages, result.tasks) == (1, 3)
    assert [leg.name for leg in result.legs] == ["single node", "round trip", "distributed"]
    assert all(leg.seconds > 0 for leg in result.legs)


def test_a_data_frame_is_verified_like_sql() -> None:
    made = session()
    result = assert_distributed_eq(made, made.sql(SQL))
    assert "Sort: t.k" in result.query


def test_parameters_reach_the_query() -> None:
    result = verify_query(session(), "select x from t where k = $wanted order by x", params={"wanted": 1})
    assert result.find_leg("distributed").table == pa.table({"x": [1.0, 2.0]})


def test_float_noise_passes_and_is_counted() -> None:
    noisy = giving({"k": [1, 2], "s": [3.0 * (1 + 1e-14), 3.0]})
    result = verify_query(session(distributed=noisy), SQL)
    assert result.outcome is Outcome.PASSED
    assert result.float_tolerance_count == 1
    exact = verify_query(session(distributed=noisy), SQL, options=CompareOptions(relative_tolerance=0.0))
    assert exact.outcome is Outcome.WRONG_ANSWER


@pytest.mark.parametrize(
    ("planned", "tasks_run", "words"),
    [
        (Distribution(reason="reads 10 bytes"), 0, "reads 10 bytes"),
        (Distribution(graph(tasks=1)), 1, "no stage ran more than one task"),
        (Distribution(graph()), 0, "3 tasks were planned, none was seen to run"),
        (Distribution(), 3, "single node"),
    ],
)
def test_not_distributed_is_never_passed(planned: Distribution, tasks_run: int, words: str) -> None:
    made = session(planned=planned, tasks_run=tasks_run)
    result = verify_query(made, SQL)
    assert result.outcome is Outcome.NOT_DISTRIBUTED
    assert words in (result.reason or "")
    with pytest.raises(VerificationError, match="not distributed"):
        assert_distributed_eq(made, SQL)
    assert_distributed_eq(made, SQL, require_distributed=False)


def test_a_wrong_answer_that_was_not_distributed_is_wrong() -> None:
    made = session(planned=Distribution(reason="small"), distributed=changed(first_row_twice))
    assert verify_query(made, SQL).outcome is Outcome.WRONG_ANSWER


def test_wrong_answer() -> None:
    result = verify_query(session(distributed=changed(first_row_twice)), SQL)
    assert result.outcome is Outcome.WRONG_ANSWER
    assert result.leg == "distributed"
    assert "extra row: k=1, s=3.0" in result.describe()


def test_a_wrong_order_is_a_wrong_answer() -> None:
    result = verify_query(session(distributed=giving({"k": [2, 1], "s": [3.0, 3.0]})), SQL)
    assert result.outcome is Outcome.WRONG_ANSWER
    assert "not in the order t.k ASC" in result.describe()


def test_a_wrong_type_is_a_wrong_answer() -> None:
    narrow = giving({"k": pa.array([1, 2], pa.int32()), "s": [3.0, 3.0]})
    result = verify_query(session(distributed=narrow), SQL)
    assert result.outcome is Outcome.WRONG_ANSWER
    assert "has type int32" in result.describe()


def test_wire_loss_is_told_apart() -> None:
    lossy = changed(first_row_twice)
    result = verify_query(session(round_trip=lossy, distributed=lossy), SQL)
    assert result.outcome is Outcome.WIRE_LOSS
    assert result.leg == "round trip"


def test_a_plan_that_does_not_decode_is_wire_loss() -> None:
    broken = failing("Internal error: unknown node")
    result = verify_query(session(round_trip=broken, distributed=broken), SQL)
    assert result.outcome is Outcome.WIRE_LOSS
    assert "unknown node" in (result.reason or "")


def test_only_the_distributed_leg_fails() -> None:
    result = verify_query(session(distributed=failing("Object Store error: lost")), SQL)
    assert result.outcome is Outcome.ERROR_MISMATCH
    assert result.leg == "distributed"
    assert "Object Store error: lost" in result.describe()


BAD_SQL = "select k / 0 as z from t"


def test_every_leg_fails_alike() -> None:
    made = session()
    result = verify_query(made, BAD_SQL)
    assert result.outcome is Outcome.BOTH_FAILED
    assert "Divide by zero" in (result.reason or "")
    with pytest.raises(VerificationError, match="both failed"):
        assert_distributed_eq(made, BAD_SQL)
    assert_distributed_eq(made, BAD_SQL, expect_error=True)


def test_an_expected_error_that_does_not_come() -> None:
    with pytest.raises(VerificationError, match="expected all runs to fail"):
        assert_distributed_eq(session(), SQL, expect_error=True)


def test_an_answer_instead_of_an_error(tmp_path: Path) -> None:
    made = session(distributed=giving({"z": [1]}))
    result = verify_query(made, BAD_SQL)
    assert result.outcome is Outcome.ERROR_MISMATCH
    assert "it gives an answer; single node fails with" in (result.reason or "")
    with pytest.raises(VerificationError):
        assert_distributed_eq(made, BAD_SQL, expect_error=True, reproducer_dir=tmp_path)


def test_another_kind_of_error() -> None:
    result = verify_query(session(distributed=failing("Resources exhausted: memory")), BAD_SQL)
    assert result.outcome is Outcome.ERROR_MISMATCH
    assert "Resources exhausted" in (result.reason or "")


class Panic(BaseException):
    """What a Rust panic looks like from Python."""


def test_a_panic_is_an_error_of_its_leg() -> None:
    def panic(run: Any) -> pa.Table:
        raise Panic("thread panicked at src")

    result = verify_query(session(distributed=panic), SQL)
    assert result.outcome is Outcome.ERROR_MISMATCH
    assert result.find_leg("distributed").error_kind == "internal"


def test_an_interrupt_is_not_swallowed() -> None:
    def interrupt(run: Any) -> pa.Table:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_query(session(distributed=interrupt), SQL)


def test_sql_that_nobody_plans() -> None:
    result = verify_query(session(), "select nothing from nowhere", name="typo")
    assert result.outcome is Outcome.BOTH_FAILED
    assert result.name == "typo"


def test_sql_that_only_we_refuse() -> None:
    class Refusing(FakeSession):
        def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> Any:
            raise Exception("no")

    made = Refusing()
    made.register("t", {"k": [1]})
    assert verify_query(made, "select k from t").outcome is Outcome.ERROR_MISMATCH


def test_not_comparable() -> None:
    made = session(distributed=giving({"r": [0.1, 0.2, 0.3]}))
    result = verify_query(made, "select random() as r from t")
    assert result.outcome is Outcome.NOT_COMPARABLE
    assert "random()" in (result.reason or "")
    with pytest.raises(VerificationError, match="not comparable"):
        assert_distributed_eq(made, "select random() as r from t")


def test_other_rows_under_a_limit_pass() -> None:
    result = verify_query(session(distributed=giving({"x": [3.0]})), "select x from t limit 1")
    assert result.outcome is Outcome.PASSED
    assert result.comparison is not None
    assert "with equal sort keys at the LIMIT" in result.comparison.notes[0]


def test_a_failure_writes_a_reproducer(tmp_path: Path) -> None:
    made = session(distributed=changed(first_row_twice))
    with pytest.raises(VerificationError) as raised:
        assert_distributed_eq(made, SQL, name="Sum of x", reproducer_dir=tmp_path)
    (directory,) = tmp_path.iterdir()
    assert str(directory) in str(raised.value)
    assert directory.name.startswith("sum-of-x-")
    assert (directory / "query.sql").read_text() == SQL + "\n"
    assert json.loads((directory / "stages.json").read_text())["stages"][0]["tasks"] == 3
    assert (directory / "explain.txt").read_text() == "a plan\n"
    assert "extra row: k=1, s=3.0" in (directory / "comparison.txt").read_text()
    assert answer(directory / "single_node.arrow").to_pydict() == RIGHT
    assert answer(directory / "round_trip.arrow").to_pydict() == RIGHT
    assert answer(directory / "distributed.arrow").num_rows == 3
    config = json.loads((directory / "config.json").read_text())
    assert config["settings"] == {"sparkfusion.slots": "2", "some.secret": "***"}
    assert "datafusion" in config["versions"]


def answer(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def test_success_writes_nothing(tmp_path: Path) -> None:
    assert_distributed_eq(session(), SQL, reproducer_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def results() -> list[VerifyResult]:
    return [
        verify_query(session(), SQL, name="good"),
        verify_query(session(planned=Distribution(reason="small")), SQL, name="tiny"),
        verify_query(session(distributed=changed(first_row_twice)), SQL, name="bad"),
        verify_query(session(), BAD_SQL, name="zero"),
    ]


def test_a_report_counts_proofs_apart() -> None:
    report = Report(results())
    assert report.total == 4
    assert report.really_distributed == 1
    assert not report.ok
    assert report.counts[Outcome.WRONG_ANSWER] == 1
    text = report.to_text()
    assert "really distributed and right: 1 of 4" in text
    assert "wrong answer     bad: the distributed leg differs" in text
    assert "good" not in text


@pytest.mark.parametrize(
    ("outcomes", "ok"),
    [
        ([], False),
        ([Outcome.PASSED], True),
        ([Outcome.PASSED, Outcome.NOT_DISTRIBUTED], True),
        ([Outcome.NOT_DISTRIBUTED], False),
        ([Outcome.PASSED, Outcome.NOT_COMPARABLE], False),
        ([Outcome.PASSED, Outcome.BOTH_FAILED], False),
        ([Outcome.PASSED, Outcome.WRONG_ANSWER], False),
    ],
)
def test_only_a_report_that_proves_something_is_ok(outcomes: list[Outcome], ok: bool) -> None:
    assert Report(VerifyResult(SQL, outcome, ()) for outcome in outcomes).ok is ok


def test_a_report_as_json() -> None:
    report = json.loads(Report(results()).to_json_text())
    assert report["outcomes"]["both failed"] == 1
    assert report["outcomes"]["wire loss"] == 0
    assert [query["outcome"] for query in report["queries"]][:2] == ["passed", "not distributed"]
    assert set(report["queries"][0]["seconds"]) == {"single node", "round trip", "distributed"}
