"""What is about Spark Connect runs on it alone, with the store that a user has without choosing one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkfusion import Session
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.conftest import Connect
from tests.runners import ALL_ON_SPARK, SPLIT, Runner

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@pytest.fixture(scope="session")
def runner(remote_spark: SparkSession) -> Runner:
    return Runner("connect", remote_spark, {**SPLIT, **ALL_ON_SPARK})


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    """A session over the table `t` of `parts` that distributes every query."""
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session
