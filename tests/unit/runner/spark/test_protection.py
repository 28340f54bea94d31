"""What Spark's settings ask of our connections and files."""

from __future__ import annotations

import pytest

from sparkfusion import UserError
from sparkfusion.config import Settings
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.protection import check_files, network_protection

NETWORK = [
    "spark.authenticate",
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
]


@pytest.mark.parametrize("name", NETWORK)
def test_settings_that_protect_the_network(name: str) -> None:
    assert network_protection({name: "True"}.get) == name
    assert network_protection({name: "false"}.get) is None


@pytest.mark.parametrize("name", NETWORK)
def test_a_protected_spark_has_a_feed_server_with_tls(name: str) -> None:
    feeding = LazyFeedServer(lambda: "127.0.0.1", lambda: network_protection({name: "true"}.get))
    try:
        assert b"BEGIN CERTIFICATE" in feeding.server(Settings()).certificate
    finally:
        feeding.close()


def test_a_user_may_ask_for_tls_and_the_plain_server_stays() -> None:
    feeding = LazyFeedServer(lambda: "127.0.0.1", lambda: None)
    try:
        plain = feeding.server(Settings())
        secure = feeding.server(Settings({"sparkfusion.feed_tls": "always"}))
        assert plain.certificate == b""
        assert secure.certificate != b""
        assert feeding.server(Settings()) is plain
    finally:
        feeding.close()


def test_plain_files_have_to_be_allowed_if_spark_encrypts_its_own() -> None:
    encrypted = {"spark.io.encryption.enabled": "true"}.get
    with pytest.raises(UserError, match="does not encrypt its own") as refused:
        check_files(encrypted, Settings())
    assert "sparkfusion.plain_files" in (refused.value.hint or "")
    check_files(encrypted, Settings({"sparkfusion.plain_files": True}))
    check_files({"spark.io.encryption.enabled": "false"}.get, Settings())
    check_files({"spark.network.crypto.enabled": "true"}.get, Settings())
