"""Settings in Spark's own configuration: `spark.sparkfusion.*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sparkfusion
from sparkfusion import UserError
from sparkfusion.cli.doctor.on_target import check_target
from tests.behaviour.test_setting_sources import SLOTS, source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_keys_of_spark_come_between_the_environment_and_connect(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKFUSION_SLOTS", "3")
    spark.conf.set("spark.sparkfusion.slots", "4")
    try:
        with sparkfusion.connect(spark) as session:
            assert (session.config[SLOTS], source_of(session, SLOTS)) == ("4", "spark.sparkfusion.slots")
        with sparkfusion.connect(spark, config={SLOTS: 5}) as session:
            assert (session.config[SLOTS], source_of(session, SLOTS)) == ("5", "connect")
        spark.conf.set("spark.sparkfusion.slot", "4")
        with pytest.raises(UserError, match=r"from spark\.sparkfusion\.slot\)(.|\n)*did you mean 'sparkfusion.slots'"):
            sparkfusion.connect(spark)
    finally:
        spark.conf.unset("spark.sparkfusion.slots")
        spark.conf.unset("spark.sparkfusion.slot")


def test_the_doctor_finds_nothing_wrong(spark: SparkSession) -> None:
    """It uses the Spark session of this process, and leaves it running."""
    found = list(check_target("spark"))
    assert [finding.state for finding in found] == ["ok", "ok", "ok"], found
    assert "on Spark local" in found[-1].text
    assert spark.range(3).count() == 3
