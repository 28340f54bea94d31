"""How often a query calls Spark's JVM. Each call takes up to a millisecond, and they follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

import sparkfusion
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.runners import ALL_ON_SPARK

ENOUGH = 60
"""A query of one job makes about 38 calls."""
OF_GARBAGE = "m\n"
"""How py4j begins to tell the JVM that an object of Python is gone; also objects of earlier queries."""


def test_a_query_of_one_job_makes_few_calls(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To read all settings of Spark would be a hundred calls."""
    calls: list[str] = []
    send = ClientServerConnection.send_command

    def count(connection: ClientServerConnection, command: str) -> Any:
        if not command.startswith(OF_GARBAGE):
            calls.append(command)
        return send(connection, command)

    with sparkfusion.connect(spark, config=DISTRIBUTED | ALL_ON_SPARK) as session:
        session.register_parquet("t", write_parts(tmp_path))
        query = session.sql("select k, count(*) as n from t group by k")
        assert "1 stage" in query.explain_text()
        query.collect()  # the first query checks the executors
        monkeypatch.setattr(ClientServerConnection, "send_command", count)
        query.collect()
    assert 0 < len(calls) < ENOUGH, "\n".join(calls)
