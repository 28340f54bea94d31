"""A query on a single node that is closed on its own thread, where a forgotten stream may be collected."""

from __future__ import annotations

import threading
from pathlib import Path

import datafusion

from sparkfusion.errors import SparkfusionError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.session.single_node import SingleNodeJob

PATIENCE = 30.0


def test_closing_it_on_its_own_thread_removes_its_spills(tmp_path: Path) -> None:
    jobs, has_job, closed = list[SingleNodeJob](), threading.Event(), threading.Event()

    def close(error: SparkfusionError) -> None:
        assert has_job.wait(PATIENCE)
        try:
            jobs[0].close()
        finally:
            closed.set()

    fails = datafusion.SessionContext().sql("select 1 / (v - 1) as v from (values (1)) as t (v)")
    jobs.append(SingleNodeJob(fails, close, OwnedDirectory("spills", tmp_path)))
    has_job.set()
    assert closed.wait(PATIENCE)
    assert list(tmp_path.iterdir()) == []
