"""Defects of DataFusion and pyarrow that sparkfusion guards against, shown without sparkfusion.

When one of these tests fails, the defect is fixed upstream: its guard can go, and its row in docs/upstream-defects.md
with it.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionConfig, SessionContext, object_store
from datafusion.plan import ExecutionPlan

from tests.suites.upstream import AGGREGATES, DOUBLED_NAMES, Case, write_aggregates, write_doubled_names

PAGE = Path(__file__).parents[2] / "docs" / "upstream-defects.md"
TRIES = 50  # whether rows are lost depends on which file is read first
Rows = list[dict[str, Any]]


def gone(guard: str) -> str:
    return f"this is fixed upstream: the guard in {guard} can go, and its row in {PAGE.name}"


def round_trip(context: SessionContext, sql: str) -> tuple[Rows, Rows | str]:
    """The answer of a plan, and of its decoded copy or that one's error."""
    plan = context.sql(sql).execution_plan()
    try:
        copy = ExecutionPlan.from_bytes(context, plan.to_bytes(context))
        return run(context, plan), run(context, copy)
    except Exception as error:
        return run(context, plan), str(error)


def run(context: SessionContext, plan: ExecutionPlan) -> Rows:
    rows: Rows = []
    for partition in range(plan.partition_count):
        rows += [row for batch in context.execute(plan, partition) for row in batch.to_pyarrow().to_pylist()]
    return sorted(rows, key=repr)


@pytest.fixture
def numbers() -> SessionContext:
    context = SessionContext()
    context.from_pydict({"k": [1, 1, 2, 2], "v": [1, 2, 3, 4], "x": [5, None, 7, None]}, name="t")
    return context


# ---- wrong answers at default settings


def test_fields_of_null_structs_have_values() -> None:
    context = SessionContext()
    context.from_arrow(pa.table({"st": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))}), name="t")
    found = [row["x"] for row in context.sql("select st['x'] as x from t").to_pylist()]
    assert found == [1, 0], gone("dialect/nested_values.py")


def test_copy_writes_null_into_the_directory_of_another_value(tmp_path: Path) -> None:
    copy = f"copy (select 1 as a, null::bigint as p union all select 2, 7) to '{tmp_path}/out/' stored as csv"
    SessionContext().sql(f"{copy} partitioned by (p)").collect()
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"p=0", "p=7"}, gone("session/copy_partitions.py")


def test_aggregate_filters_drop_rows(tmp_path: Path) -> None:
    path = write_aggregates(tmp_path)
    answers = set()
    for _ in range(TRIES):
        context = SessionContext(SessionConfig().with_target_partitions(2))
        context.register_parquet("t", path)
        answers |= set(context.sql(AGGREGATES.sql).to_pydict()["m"])
        if answers != {AGGREGATES.right}:
            return
    pytest.fail(gone("session/upstream.py (aggregates)"))


@pytest.mark.parametrize("case", DOUBLED_NAMES, ids=lambda case: case.name)
def test_join_filters_drop_rows(tmp_path: Path, case: Case) -> None:
    context = SessionContext()
    for name, path in write_doubled_names(tmp_path).items():
        context.register_parquet(name, path)
    assert context.sql(case.sql).count() != case.right, gone("session/upstream.py (joins)")


def test_reset_of_dynamic_filters_forgets_those_of_aggregates() -> None:
    context = SessionContext(SessionConfig().with_information_schema())
    context.sql("set datafusion.optimizer.enable_dynamic_filter_pushdown = false")
    context.sql("reset datafusion.optimizer.enable_dynamic_filter_pushdown")
    shown = context.sql("show datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown").to_pydict()
    assert shown["value"] == ["false"], gone("session/upstream.py (guards_of)")


@pytest.mark.parametrize("sql", ["delete from t where v in (select 1)", "update t set x = 0 where v in (select 1)"])
def test_changes_whose_condition_is_a_subquery_change_every_row(numbers: SessionContext, sql: str) -> None:
    changed = numbers.sql(sql).to_pydict()["count"]
    assert changed == [4], gone("session/changes.py")


def test_planning_an_update_applies_it(numbers: SessionContext) -> None:
    changed = numbers.sql("update t set x = 100")
    changed.execution_plan()
    assert numbers.sql("select min(x) as x from t").to_pydict()["x"] == [100], gone("session/changes.py")


# ---- what encoded plans lose


@pytest.mark.parametrize(
    "sql",
    [
        "select v, sum(v) filter (where v > 1) over (partition by k order by v) as z from t",
        "select v, last_value(x) ignore nulls over (partition by k order by v) as z from t",
        "select count(*) as z from t group by grouping sets (())",
        "select 1 as z from generate_series(1, 3)",
        "select arrow_cast(v, 'Float16') + arrow_cast(1, 'Float16') as z from t",
        "select arrow_metadata(with_metadata(v, 'unit', 'ms'), 'unit') as z from t",
    ],
    ids=[
        "window FILTER",
        "window IGNORE NULLS",
        "GROUPING SETS (())",
        "generate_series",
        "Float16 literal",
        "metadata",
    ],
)
def test_plans_lose(numbers: SessionContext, sql: str) -> None:
    answer, copy = round_trip(numbers, sql)
    assert answer != copy, gone("plan/gate.py")


def test_plans_lose_the_direction_of_window_functions(numbers: SessionContext) -> None:
    sql = "select v, lag(v) over (order by v desc) as z from (select v from t order by v limit 3)"
    answer, copy = round_trip(numbers, sql)
    assert answer != copy, gone("plan/reversed_windows.py")


def test_to_timestamp_and_a_time_zone() -> None:
    """With a zone in the session its values have none, though its type has: also without encoding."""
    context = SessionContext(SessionConfig().set("datafusion.execution.time_zone", "+02:00"))
    context.from_pydict({"s": ["2000-01-01T00:00:00"]}, name="t")
    with pytest.raises(Exception, match="must match schema types"):
        context.sql("select to_timestamp(s) as z from t").collect()


def test_plans_lose_the_compression_of_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"a\n1\n"))
    context = SessionContext()
    context.register_csv("t", str(tmp_path / "t.csv"), file_compression_type="gzip")
    answer, copy = round_trip(context, "select a from t")
    assert answer != copy, gone("session/lossy.py")


def test_plans_lose_the_stream_format_of_arrow_files(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2]})
    with pa.ipc.new_stream(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table)
    context = SessionContext()
    context.register_arrow("t", str(tmp_path / "t.arrow"))
    answer, copy = round_trip(context, "select a from t")
    assert answer != copy, gone("plan/arrow_files.py")


def test_plans_with_scalar_subqueries_cannot_be_cut(numbers: SessionContext) -> None:
    _, copy = round_trip(numbers, "select v from t where v > (select avg(v) from t)")
    assert isinstance(copy, list)  # whole it travels; below its node the value is unknown
    plan = numbers.sql("select v from t where v > (select avg(v) from t)").execution_plan()
    (below, *_) = plan.children()
    with pytest.raises(Exception, match=r"(?i)subquery"):
        ExecutionPlan.from_bytes(numbers, below.to_bytes(numbers))


# ---- failures


def test_grouping_by_a_struct_without_fields_panics() -> None:
    context = SessionContext()
    empty = pa.StructArray.from_arrays([], fields=[], mask=pa.array([False, False]))
    context.register_record_batches("t", [[pa.record_batch({"s": empty})]])
    with pytest.raises(Exception, match="panicked"):
        context.sql("select s, count(*) from t group by s").collect()


def test_a_footer_with_a_wrong_length_panics(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    with pytest.raises(BaseException, match="range start must not be greater") as caught:
        SessionContext().read_parquet(str(tmp_path / "bad.parquet"))
    assert not isinstance(caught.value, Exception), gone("session/damaged_files.py")


def test_partitioned_by_takes_quotes_for_a_part_of_the_name(tmp_path: Path, numbers: SessionContext) -> None:
    with pytest.raises(Exception, match="k"):
        numbers.sql(f"copy t to '{tmp_path}/out/' stored as parquet partitioned by (\"k\")").collect()


def test_setting_a_runtime_option_says_that_there_is_no_catalog() -> None:
    """Contexts that are made with a session's options would have none."""
    context = SessionContext(SessionConfig().with_information_schema())
    context.sql("set datafusion.runtime.list_files_cache_limit = '0'")
    shown = context.sql("show datafusion.catalog.create_default_catalog_and_schema").to_pydict()
    assert shown["value"] == ["false"], gone("worker/task_context.py")


def test_object_stores_name_a_module_that_does_not_exist() -> None:
    """Pickle looks for a class in the module that it names."""
    named = object_store.AmazonS3.__module__
    assert importlib.util.find_spec(named) is None, gone("session/object_stores.py")


def test_cast_of_a_sliced_list_view_has_wrong_offsets() -> None:
    sliced = pa.array([[1], [2, 3], [4]], pa.list_view(pa.int64())).slice(1)
    assert sliced.to_pylist() == [[2, 3], [4]]
    with pytest.raises(pa.ArrowInvalid, match="Offset invariant failure"):
        sliced.cast(pa.list_(pa.int64())).validate(full=True)


def test_a_forked_child_waits_for_flight_servers_of_its_parent() -> None:
    program = """if True:
        import os, sys, time
        from pyarrow import flight
        server = flight.FlightServerBase("grpc://127.0.0.1:0")
        child = os.fork()
        if child == 0:
            sys.exit(7)
        deadline = time.monotonic() + 2
        while not (ended := os.waitpid(child, os.WNOHANG)[0]) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not ended:
            os.kill(child, 9)
            os.waitpid(child, 0)
        print(ended)
    """
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "0\n", gone("transport/flight/calls.py")


def test_select_exprs_returns_something_else() -> None:
    made = SessionContext().from_pydict({"n": [1]}).select_exprs("n + 1 as m")
    assert not isinstance(made, DataFrame), gone("session/dataframe_verbs.py")


def test_an_insert_into_compressed_files_writes_files_that_the_table_does_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"v\n1\n"))
    context = SessionContext()
    options = "'format.compression' 'gzip', 'format.has_header' 'true'"
    context.sql(f"create external table t stored as csv location '{tmp_path}/' options ({options})")
    context.sql("insert into t values (2)").collect()
    assert context.sql("select v from t").count() == 1, gone("session/table_writes.py")


def test_html_of_rows_is_not_escaped() -> None:
    shown = SessionContext().from_pydict({"n": ["<script>"]})._repr_html_()
    assert "'><script></td>" in shown, gone("session/rows_html.py")


def test_every_defect_is_on_the_page() -> None:
    """The page also names tests of other modules; tests/docs checks that they exist."""
    text = PAGE.read_text()
    listed = set(re.findall(r"`(test_\w+)`", text))
    here = {name for name in globals() if name.startswith("test_") and not name.startswith("test_every_")}
    assert here <= listed


def test_every_row_says_where_the_defect_is_tracked() -> None:
    """By a link, or with the day of a search that found nothing."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    defects = [row.removeprefix("| ").split(" | ")[0] for row in rows]
    defects = [each for each in defects if each not in ("defect", "lost")]
    assert len(defects) > 30
    assert [each for each in defects if not re.search(r"\]\(https://|no issue found, \d{4}-\d\d-\d\d", each)] == []
