"""Explain shows the stage tree, or why there is none; with analyze, what every stage and operator did."""

from __future__ import annotations

import json
import re

import datafusion
import pyarrow as pa
import pytest

from sparkfusion import Session, UserError
from tests.behaviour.parts import PARTS, TOTAL, record
from tests.runners import FLIGHT, Runner

QUERY = "select k, count(*) as n from t where v >= 0 group by k"


def test_text_shows_stages_exchanges_and_files(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.sql(QUERY).explain()
    shown = capsys.readouterr().out
    assert shown.startswith("distributed: 2 stages")
    assert re.search(r"Stage 1 ── 4 tasks ── shuffle by \[.*k.*\] into 4", shown)
    assert "ExchangeSource: shuffle of stage 1" in shown
    assert re.search(r"t0: 0\.parquet", shown)
    assert " ms" not in shown


def test_explain_does_not_run_the_query(session: Session) -> None:
    events = record(session)
    for format in ("text", "json", "dot", "html"):
        session.sql(QUERY).explain_text(format=format)
    assert events == []


def test_json_describes_the_graph(session: Session) -> None:
    shown = json.loads(session.sql(QUERY).explain_text(format="json"))
    assert shown["distributed"] is True
    assert [stage["id"] for stage in shown["stages"]] == [1, 2]
    assert shown["exchanges"][0]["kind"] == "shuffle"
    assert any("AggregateExec" in line for line in shown["stages"][0]["operators"])
    assert "metrics" not in shown


def test_dot_has_an_edge_for_each_exchange(session: Session) -> None:
    frame = session.sql('select "v" as "a""b", count(*) from t group by "v"')
    shown = frame.explain_text(format="dot")
    assert shown.startswith("digraph")
    assert re.search(r'stage1 -> stage2 \[label="shuffle by .*"\]', shown)
    assert "stage2 -> stage0" in shown
    assert shown.count("{") == shown.count("}")


def test_unknown_format_is_refused(session: Session) -> None:
    with pytest.raises(UserError, match="xml"):
        session.sql(QUERY).explain_text(format="xml")  # type: ignore[arg-type]


def test_analyze_shows_rows_bytes_time_and_skew(session: Session) -> None:
    shown = session.sql(QUERY).explain_text(analyze=True)
    stage = re.search(
        r"Stage 1 .* ran (?:as )?(\d+)(?: tasks)?: ([\d,]+) rows, ([\d,]+) bytes, [\d,.]+ ms, skew (\d+\.\d)", shown
    )
    assert stage is not None, shown
    assert int(stage[1]) == PARTS
    assert float(stage[4]) >= 1.0
    assert re.search(rf"DataSourceExec.*\({TOTAL:,} rows", shown)


def test_analyze_shows_what_came_from_other_workers(session: Session, runner: Runner) -> None:
    """The head has all its input from workers, unless they are in this process or share their files with it."""
    sorting = session.sql(f"{QUERY} order by k")
    shown = sorting.explain_text(analyze=True)
    metrics = json.loads(sorting.explain_text(analyze=True, format="json"))["metrics"]
    told = re.search(r"from other workers: ([\d,]+) bytes of stage 2 in \d+ messages?, [\d,.]+ ms", shown)
    fetched = [each for stage in metrics if stage["stage"] == 0 for each in stage["fetched"]]
    if not runner.name.startswith(FLIGHT):
        assert (told, fetched) == (None, [])
        return
    assert told is not None, shown
    (by_head,) = fetched
    (made,) = (stage["bytes"] for stage in metrics if stage["stage"] == 2)
    assert by_head["bytes"] == made
    assert by_head["messages"] > 0
    assert by_head["seconds"] > 0


def test_analyze_as_json_has_metrics_of_every_stage_and_operator(session: Session) -> None:
    shown = json.loads(session.sql(QUERY).explain_text(analyze=True, format="json"))
    by_stage = {metrics["stage"]: metrics for metrics in shown["metrics"]}
    assert set(by_stage) >= {1, 2}
    assert by_stage[1]["tasks"] == PARTS
    assert by_stage[2]["rows"] == 7
    scan = by_stage[1]["operators"][-1]
    assert scan["name"].startswith("DataSourceExec")
    assert scan["rows"] == TOTAL
    assert all(metrics["seconds"] > 0 for metrics in by_stage.values())


@pytest.mark.parametrize("format", ["text", "json", "dot"])
@pytest.mark.parametrize(
    ("query", "setting", "reason"),
    [
        ("select 1 as one", {}, "reads no data"),
        (QUERY, {"sparkfusion.enabled": "false"}, "sparkfusion.enabled is false"),
        (QUERY, {"sparkfusion.bytes_per_partition": "1GiB"}, "sparkfusion.bytes_per_partition"),
        (QUERY, {"datafusion.execution.target_partitions": "1"}, "target_partitions is 1"),
        (
            "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select n from r, t",
            {},
            "RecursiveQueryExec cannot be encoded",
        ),
        ("select sum(v) filter (where v > 3) over (partition by k) as s from t", {}, "FILTER on a window"),
    ],
)
def test_reason_why_a_query_is_not_distributed(
    session: Session, format: str, query: str, setting: dict[str, str], reason: str
) -> None:
    session.config.update(setting)
    frame = session.sql(query)
    assert reason in (frame.distribution().reason or "")
    shown = frame.explain_text(format=format)  # type: ignore[arg-type]
    assert reason in shown
    if format == "json":
        assert json.loads(shown)["distributed"] is False


def test_function_that_cannot_travel_is_named_in_the_reason(session: Session) -> None:
    import threading

    lock = threading.Lock()

    def locked(values: pa.Array) -> pa.Array:
        with lock:
            return values

    session.register_udf(datafusion.udf(locked, [pa.int64()], pa.int64(), "immutable", "locked"))
    frame = session.sql("select k, sum(locked(v)) as s from t group by k")
    assert "cannot pickle" in (frame.distribution().reason or "")
    assert "Traceback" not in (frame.distribution().reason or "")
    assert sum(frame.to_pydict()["s"]) == sum(range(TOTAL))


@pytest.mark.parametrize("analyze", [False, True])
def test_a_union_of_aggregates_with_the_same_keys(session: Session, analyze: bool) -> None:
    """DataFusion interleaves them. A stage's plan, taken by itself, is then one that DataFusion does not decode."""
    half = "select k, count(*) as n from t where v % 2 = {} group by k"
    frame = session.sql(f"select k, sum(n) as n from ({half.format(0)} union all {half.format(1)}) group by k")
    shown = frame.explain_text(analyze=analyze)
    assert "UnionExec" in shown if analyze else "InterleaveExec" in shown
    assert sum(frame.to_pydict()["n"]) == TOTAL


def test_explain_statement_shows_the_distributed_plan(session: Session) -> None:
    shown = session.sql(f"explain {QUERY}").to_pydict()
    assert shown["plan_type"] == ["logical_plan", "distributed_plan"]
    assert shown["plan"][-1].startswith("distributed: 2 stages")


def test_explain_analyze_statement_runs_the_query(session: Session) -> None:
    events = record(session)
    (shown,) = session.sql(f"explain analyze {QUERY}").to_pydict()["plan"]
    assert "skew" in shown
    assert events
