"""Settings from environment variables and from Spark's configuration."""

from __future__ import annotations

import pytest

from sparkfusion.config import SETTINGS
from sparkfusion.config.given_settings import GivenSetting, read_below_spark, read_spark, variable_of
from sparkfusion.errors import UserError


def test_every_setting_has_a_variable() -> None:
    variables = {variable_of(setting.name): "1" for setting in SETTINGS}
    assert {given.name for given in read_below_spark(None, variables)} == {setting.name for setting in SETTINGS}


def test_other_variables_are_no_settings(caplog: pytest.LogCaptureFixture) -> None:
    others = {
        "PATH": "/bin",
        "SPARKFUSION_TOKEN": "secret",
        "SPARKFUSION_CONFIG": "",
        "SPARKFUSION_WORKER_SERVICE_HOST": "10.0.0.1",  # what Kubernetes sets for a service `sparkfusion-worker`
        "SPARKFUSION_WORKER_PORT_7070_TCP_ADDR": "10.0.0.1",
        "SPARKFUSION_WORKER_PORT": "tcp://10.0.0.1:7070",
    }
    assert read_below_spark(None, others) == []
    assert caplog.text == ""
    assert read_below_spark(None, {"SPARKFUSION_WHATEVER": "1"}) == []
    assert "SPARKFUSION_WHATEVER is not a setting" in caplog.text


def test_a_misspelt_variable_is_an_error() -> None:
    with pytest.raises(UserError, match=r"SPARKFUSION_SLOT is not a setting\n  hint: did you mean SPARKFUSION_SLOTS"):
        read_below_spark(None, {"SPARKFUSION_SLOT": "1"})


def test_keys_of_spark() -> None:
    configuration = {"spark.app.name": "a", "spark.sparkfusion.slots": "4", "spark.sparkfusionx": "1"}
    assert read_spark(configuration) == [GivenSetting("sparkfusion.slots", "4", "spark.sparkfusion.slots")]
