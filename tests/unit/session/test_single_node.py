"""What a query on a single node gets of the user's memory limit."""

from __future__ import annotations

from pathlib import Path

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.config import Settings
from sparkfusion.session.single_node import limit

OPTIONS = {"datafusion.execution.target_partitions": "4"}


@pytest.fixture
def frame(tmp_path: Path) -> datafusion.DataFrame:
    for file in range(2):
        pq.write_table(pa.table({"k": [file, 1], "v": [2, 3]}), tmp_path / f"{file}.parquet")
    context = datafusion.SessionContext()
    context.register_parquet("t", tmp_path)
    return context.sql("select k, sum(v) from t group by k")


def partitions_exchange_rows(frame: datafusion.DataFrame, settings: Settings, options: dict[str, str]) -> bool:
    limited, _ = limit(frame, settings, options, lambda context: None)
    return "RepartitionExec" in limited.execution_plan().display_indent()


def test_it_runs_on_several_cores(frame: datafusion.DataFrame) -> None:
    assert partitions_exchange_rows(frame, Settings(), OPTIONS)


def test_under_a_limit_it_runs_on_one_core(frame: datafusion.DataFrame) -> None:
    limited = Settings({"sparkfusion.task_memory_bytes": "1GiB"})
    assert not partitions_exchange_rows(frame, limited, OPTIONS)
    assert not partitions_exchange_rows(frame, Settings(), OPTIONS | {"datafusion.runtime.memory_limit": "1G"})
