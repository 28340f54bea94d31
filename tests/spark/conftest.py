"""What is about Spark itself runs on Spark alone, with the store that a user has without choosing one.

Queries are split: one task for the whole plan leaves nothing to Spark's scheduler and to stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.runners import ALL_ON_SPARK, SPLIT, Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def runner(spark: SparkSession) -> Runner:
    return Runner("spark", spark, {**SPLIT, **ALL_ON_SPARK})
