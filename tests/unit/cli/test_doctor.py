"""`sparkfusion doctor`: what it finds wrong, what it advises, and its exit code."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sparkfusion.cli.doctor.finding import Finding
from sparkfusion.cli.doctor.on_target import check_python_workers, check_spark_configuration, check_target
from sparkfusion.cli.doctor.this_machine import check_memory, check_ports
from sparkfusion.config import MIB, Settings
from tests.unit.cli.conftest import Invoke
from tests.worker_processes import WorkerProcess, url_of


def states(findings: list[Finding]) -> list[str]:
    return [finding.state for finding in findings]


def test_a_sound_machine_and_a_query_in_this_process(invoke: Invoke) -> None:
    result = invoke("doctor", "--on", "local")
    assert result.exit_code == 0, result.output
    assert "wrong" not in result.stdout
    for subject in ("Python", "packages", "settings", "memory", "store", "ports", "Java"):
        assert f" {subject}: " in result.stdout
    assert "right answer: distributed: 2 stages" in result.stdout


def test_what_is_wrong_has_a_remedy_and_the_exit_code_tells(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARKFUSION_STORE_DIR", str(tmp_path / "missing"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARKFUSION_OTHERWISE", "1")
    result = invoke("doctor")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    wrong = [number for number, line in enumerate(lines) if line.startswith("wrong")]
    assert [lines[number].split()[1] for number in wrong] == ["store:", "Java:"]
    assert all("→" in lines[number + 1] for number in wrong)
    assert "unset SPARKFUSION_OTHERWISE" in result.stdout


def test_every_wrong_setting_has_a_remedy_and_the_rest_is_checked(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "sparkfusion.toml"
    path.write_text("[settings]\nsparkfusion.slot = 1\n")
    monkeypatch.setenv("SPARKFUSION_CONFIG", str(path))
    monkeypatch.setenv("SPARKFUSION_SLOTS", "many")
    result = invoke("doctor")
    assert result.exit_code == 1
    assert f"did you mean 'sparkfusion.slots'? correct it in {path}" in result.stdout
    assert "not 'many' (from SPARKFUSION_SLOTS)\n         → correct SPARKFUSION_SLOTS, or unset it" in result.stdout
    for subject in ("memory", "store", "ports"):
        assert f" {subject}: " in result.stdout


def test_memory_that_is_not_there() -> None:
    settings = Settings({"sparkfusion.slots": 2, "sparkfusion.task_memory_bytes": 400 * MIB})
    settings.set("sparkfusion.store_memory_bytes", 100 * MIB)
    assert states(list(check_memory(settings, 900 * MIB))) == ["ok"]
    (found,) = check_memory(settings, 899 * MIB)
    assert found.state == "wrong"
    assert "together 900 MiB" in found.text


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = Settings({"sparkfusion.feed_port": server.getsockname()[1]})
        assert states(list(check_ports(taken))) == ["wrong"]
    assert states(list(check_ports(Settings()))) == ["ok"]


@pytest.mark.long
def test_workers(workers: list[WorkerProcess]) -> None:
    assert states(list(check_target(url_of(workers[:2])))) == ["ok", "ok"]
    (found,) = check_target("flight://127.0.0.1:9?token=secret")
    assert found.state == "wrong"
    assert found.remedy == "is it running? sparkfusion worker --port 9"
    assert "secret" not in found.subject + found.text


def test_new_python_workers() -> None:
    (found,) = check_python_workers({"spark.master": "yarn"})
    assert found.state == "note"
    assert "spark.python.daemon.module to sparkfusion.runner.spark.daemon" in (found.remedy or "")
    assert not list(check_python_workers({"spark.python.daemon.module": "a.daemon.of.your.own"}))


def test_memory_of_executors() -> None:
    """YARN ends an executor that uses more than its settings say; a standalone cluster does not."""
    settings = {"spark.executor.cores": "4", "spark.executor.memory": "4g"}
    assert states(list(check_spark_configuration({"spark.master": "spark://host:7077", **settings}))) == ["ok"]
    (found,) = check_spark_configuration({"spark.master": "yarn", **settings})
    assert found.state == "wrong"
    assert (found.remedy or "").startswith("set spark.executor.memoryOverhead to ")
    enough = {"spark.master": "yarn", **settings, "spark.executor.memoryOverhead": "8g"}
    assert states(list(check_spark_configuration(enough))) == ["ok"]
    assert states(list(check_spark_configuration(enough, 4096 * MIB))) == ["wrong"]
