"""`--connect`: the same commands where tasks run elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

import sparkfusion
from tests.behaviour.probes import until
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_main import FORCED, SCRIPT
from tests.worker_processes import IDLE, TOKEN, WorkerProcess, url_of

COMMANDS = ("sql", "explain", "verify")
GROUPED = "select part, count(*) as n from items group by part order by part nulls first"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target", ["local", "spark", "flight://a:1,b:2?token=secret"])
def test_the_target_is_handed_to_connect(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: str, target: str
) -> None:
    given: list[object] = []
    connect = sparkfusion.connect

    def record(target: object = None, *, config: dict[str, object]) -> sparkfusion.Session:
        given.append(target)
        return connect(config=config)

    monkeypatch.setattr(sparkfusion, "connect", record)
    result = invoke(command, "-c", "select 1", "--connect", target)
    nothing_verified = 3  # `select 1` is not distributed
    expected = nothing_verified if command == "verify" else 0
    assert (result.exit_code, given) == (expected, [target]), result.output


@pytest.mark.parametrize("target", ["spark://host:7077", "yarn", "k8s://https://host:443", "sc://host:15002"])
def test_a_master_of_spark_becomes_a_spark_session_that_is_stopped(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    from sparkfusion.runner.spark import launch

    given, stopped = list[object](), list[str]()

    class FakeSpark:
        def stop(self) -> None:
            stopped.append(target)

    connect = sparkfusion.connect

    def record(target: object = None, *, config: dict[str, object]) -> sparkfusion.Session:
        given.append(target)
        return connect(config=config)

    started = FakeSpark()
    monkeypatch.setattr(launch, "session_at", {target: started}.__getitem__)
    monkeypatch.setattr(sparkfusion, "connect", record)
    result = invoke("sql", "-c", "select 1", "--connect", target)
    assert (result.exit_code, given, stopped) == (0, [started], [target]), result.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("target", ["localhost:7070?token=secret", "flihgt://a:1?token=secret", "Spark"])
def test_what_is_no_target_is_a_usage_error_that_keeps_the_token(invoke: Invoke, command: str, target: str) -> None:
    result = invoke(command, "-c", "select 1", "--connect", target)
    assert result.exit_code == 2
    assert "flight://host:port" in result.stderr
    assert "secret" not in result.stderr


def test_sql_gives_the_answer_of_workers(invoke: Invoke, items: str, workers: list[WorkerProcess]) -> None:
    common = ("sql", "-c", GROUPED, "-t", items, "--format", "csv", "--timing", *FORCED)
    here, there = invoke(*common), invoke(*common, "--connect", url_of(workers[:2]))
    assert there.exit_code == 0, there.output
    assert there.stdout == here.stdout
    assert " stages, " in there.stderr


def test_the_token_may_come_from_the_environment(
    invoke: Invoke, items: str, workers: list[WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKFUSION_TOKEN", TOKEN)
    result = invoke("explain", "-c", GROUPED, "-t", items, *FORCED, "--connect", workers[0].address)
    assert result.exit_code == 0, result.output
    assert "on 1 worker" in result.stdout.splitlines()[0]


def test_verify_proves_an_answer_of_workers(invoke: Invoke, items: str, workers: list[WorkerProcess]) -> None:
    url = url_of(workers[:2])
    result = invoke("verify", "-c", GROUPED, "-t", items, "--require-distributed", "--connect", url)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("passed")


@pytest.mark.parametrize("command", [("sql",), ("explain", "--analyze"), ("verify",)], ids=" ".join)
def test_ctrl_c_cancels_on_workers(items: str, workers: list[WorkerProcess], command: tuple[str, ...]) -> None:
    endless = "select sum(a.id * b.id + c.id * d.id) from items a, items b, items c, items d"
    process = subprocess.Popen(
        [*SCRIPT, *command, "-c", f"select 1; {endless}", "-t", items, *FORCED, "--connect", workers[0].address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARKFUSION_TOKEN": TOKEN, "PYTHONUNBUFFERED": ""},  # buffered, as usual
    )
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline()
            if command != ("verify",):  # its single-node leg does not end
                until(lambda: workers[0].status().running > 0)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, "sparkfusion: cancelled\n")
    until(lambda: workers[0].status() == IDLE)
