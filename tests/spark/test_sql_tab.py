"""The entries of our queries in Spark's SQL tab, as Spark's own store has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkfusion.errors import QueryCancelledError, SparkfusionError
from sparkfusion.runner.spark import sql_tab
from sparkfusion.runner.spark.sql_tab import SqlTab, is_shown
from tests.behaviour.parts import DISTRIBUTED, TOTAL, write_parts
from tests.behaviour.probes import until
from tests.conftest import Connect

pytestmark = pytest.mark.long  # what people see, and not what is computed

TEXT = """
    select k, sum(v) as s
    from t group by k
"""
ENDLESS = "select count(*) from t a, t b, t c where a.v + b.v + c.v = -1"


@dataclass(frozen=True)
class Entry:
    description: str
    plan: str
    jobs: int
    ended: bool
    error: str
    metrics: dict[str, dict[str, str]]
    """By the names of the nodes, then by their own."""


def items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


class Entries:
    """What came into Spark's store since this was made."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._store: Any = self._spark._jsparkSession.sharedState().statusStore()
        self._before = {each.executionId() for each in self._listed()}

    def new(self) -> list[Entry]:
        return [self._read(each) for each in self._listed() if each.executionId() not in self._before]

    def ended(self) -> list[Entry]:
        """The new ones, when all have ended: Spark may tell the end of a job after its result."""
        until(lambda: all(entry.ended for entry in self.new()), "the entries have ended")
        return self.new()

    def _listed(self) -> list[Any]:
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return items(self._store.executionsList())

    def _read(self, data: Any) -> Entry:
        values = self._store.executionMetrics(data.executionId())
        error = data.errorMessage()
        return Entry(
            description=data.description(),
            plan=data.physicalPlanDescription(),
            jobs=data.jobs().size(),
            ended=data.completionTime().isDefined(),
            error=error.get() if error.isDefined() else "",
            metrics={
                node.name(): {
                    each.name(): values.get(each.accumulatorId()).get()
                    for each in items(node.metrics())
                    if values.contains(each.accumulatorId())
                }
                for node in items(self._store.planGraph(data.executionId()).allNodes())
            },
        )


@pytest.fixture
def entries(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Entries:
    """With entries, although the session of the tests has no user interface."""
    monkeypatch.setattr(sql_tab, "is_shown", lambda conf: True)
    return Entries(spark)


def test_a_query_is_an_entry_with_its_jobs_and_the_rows_of_its_stages(
    connect: Connect, entries: Entries, tmp_path: Path
) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    with session.sql(TEXT).stream() as running:
        running.read_all()
        stages = running.reports()
    (entry,) = entries.ended()
    assert entry.description == f"sparkfusion query {running.id}: select k, sum(v) as s from t group by k"
    assert entry.plan.startswith("distributed: 2 stages")
    assert (entry.jobs, entry.ended, entry.error) == (2, True, "")
    names = ["Stage 1: scan parts/0.parquet and 3 more, aggregate", "Stage 2: rows of stage 1, aggregate"]
    assert sorted(entry.metrics) == names
    for number, name in enumerate(names, start=1):
        reports = [report for report in stages if report.key.stage == number]
        shown = entry.metrics[name]
        assert set(shown) == {"rows", "bytes", "tasks", "time of tasks"}
        assert shown["rows"] == str(sum(report.rows for report in reports))
        assert shown["tasks"] == str(len(reports))
    assert entry.metrics[names[0]]["rows"] == "28"  # seven keys in each of four files


def test_a_failed_query_ends_its_entry_and_says_why(connect: Connect, entries: Entries, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    with pytest.raises(SparkfusionError, match="Divide by zero"):
        session.sql("select 1 / (v - 500) as x from t").collect()
    (entry,) = entries.ended()
    assert entry.ended
    assert "Divide by zero" in entry.error


def test_a_cancelled_query_ends_its_entry(connect: Connect, entries: Entries, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    with session.sql(ENDLESS).stream() as running:
        until(lambda: any(entry.jobs for entry in entries.new()), "its first job has started")
        running.cancel()
        with pytest.raises(QueryCancelledError):
            running.read_all()
    (entry,) = entries.ended()
    assert entry.ended
    assert "cancelled" in entry.error


def test_a_query_that_has_enough_rows_has_not_failed(connect: Connect, entries: Entries, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    assert session.sql("select * from t limit 5").collect().num_rows == 5
    (entry,) = entries.ended()
    assert (entry.ended, entry.error) == (True, "")


def test_jobs_over_a_spark_dataframe_keep_the_settings_of_spark(
    connect: Connect, spark: SparkSession, entries: Entries
) -> None:
    """In jobs that belong to an entry, Spark would not apply the settings of the session."""
    session = connect(DISTRIBUTED)
    session.register_spark("t", spark.range(TOTAL, numPartitions=3))
    session.sql("select count(*) as n from t").collect()
    (entry,) = (each for each in entries.ended() if each.description.startswith("sparkfusion query"))
    assert (entry.jobs, entry.ended, entry.error) == (0, True, "")
    assert any(shown.get("tasks") for shown in entry.metrics.values())


def test_a_query_on_resident_workers_is_an_entry_without_jobs(
    connect: Connect, entries: Entries, tmp_path: Path
) -> None:
    session = connect({**DISTRIBUTED, "sparkfusion.spark_mode": "resident"})
    session.register_parquet("t", write_parts(tmp_path))
    session.sql(TEXT).collect()
    (entry,) = entries.ended()
    assert (entry.jobs, entry.ended, entry.error) == (0, True, "")
    assert entry.metrics["Stage 1: scan parts/0.parquet and 3 more, aggregate"]["rows"] == "28"


def test_what_the_user_hides_from_spark_is_hidden(
    connect: Connect, spark: SparkSession, entries: Entries, tmp_path: Path
) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    spark.conf.set("spark.sql.redaction.string.regex", "1234[0-9]+")
    try:
        session.sql("select count(*) from t where v <> 123456").collect()
    finally:
        spark.conf.unset("spark.sql.redaction.string.regex")
    (entry,) = entries.ended()
    assert "123456" not in entry.description
    assert "123456" not in entry.plan
    assert "select count(*) from t where v <> " in entry.description


def test_an_entry_that_cannot_be_made_fails_no_query(
    connect: Connect, entries: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(session: object) -> None:
        raise RuntimeError("another version of Spark")

    monkeypatch.setattr(sql_tab, "_Java", refuse)
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    assert session.sql(TEXT).collect().num_rows == 7
    assert entries.new() == []


def test_nothing_is_posted_without_a_user_interface_or_event_log(
    connect: Connect, spark: SparkSession, tmp_path: Path
) -> None:
    entries = Entries(spark)
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    session.sql(TEXT).collect()
    assert entries.new() == []


@pytest.mark.parametrize(
    ("conf", "shown"),
    [
        ({}, True),
        ({"spark.ui.enabled": "false"}, False),
        ({"spark.ui.enabled": "false", "spark.eventLog.enabled": "true"}, True),
    ],
)
def test_entries_are_for_a_user_interface_or_an_event_log(conf: dict[str, str], shown: bool) -> None:
    assert is_shown(conf.get) is shown


def test_nothing_is_posted_to_a_stopped_context() -> None:
    class Stopped:
        class sparkContext:  # noqa: N801
            _jsc = None

    session: Any = Stopped()
    nothing_set: dict[str, str] = {}
    assert not SqlTab(session, nothing_set.get).works
