"""What operators are measured by."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionConfig, SessionContext

from sparkfusion.worker.measure import operator_metrics


def test_scans_have_the_time_of_reading_and_decoding(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [str(n) for n in range(50_000)]}), tmp_path / "t.parquet")
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_parquet("t", str(tmp_path / "t.parquet"))
    plan = context.sql("select a from t where a <> '7'").execution_plan()
    assert sum(batch.to_pyarrow().num_rows for batch in context.execute(plan, 0)) == 49_999
    above, scan = operator_metrics(plan)
    assert scan.name.startswith("DataSourceExec")
    (node,) = plan.children()
    counted = node.metrics()
    assert counted is not None
    assert scan.compute_seconds == (counted.sum_by_name("time_elapsed_processing") or 0) / 1e9
    assert scan.compute_seconds > (counted.elapsed_compute or 0) / 1e9
    assert above.compute_seconds is not None
