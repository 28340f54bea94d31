"""`sparkfusion worker`: what it prints, when it refuses to start, how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import sparkfusion
from tests.worker_processes import COMMAND as RUN
from tests.worker_processes import ROOT

COMMAND = [sys.executable, "-c", RUN, "worker"]


def without_token() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "SPARKFUSION_TOKEN"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_makes_a_token_says_so_once_and_ends_cleanly(number: signal.Signals) -> None:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=without_token()
    ) as worker:
        assert worker.stdout is not None
        found = re.fullmatch(
            r'ready: sparkfusion\.connect\("(flight://127\.0\.0\.1:\d+\?token=\S+)"\)\n', worker.stdout.readline()
        )
        assert found is not None
        with sparkfusion.connect(found.group(1)) as session:
            assert session.sql("select 1 as x").to_pylist() == [{"x": 1}]
        worker.send_signal(number)
        rest, errors = worker.communicate(timeout=60)
        assert (worker.returncode, rest, errors) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "without TLS"),
        pytest.param(["--tls-cert", "x"], "both --tls-cert and --tls-key", marks=pytest.mark.long),
        pytest.param(
            ["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "cannot read '/nowhere'", marks=pytest.mark.long
        ),
        (["--token-file", "/nowhere"], "cannot read the token"),
        pytest.param(["--allow-root", "/nowhere"], "is not a directory", marks=pytest.mark.long),
        pytest.param(
            ["--store-dir", "/nowhere"],
            "give --store-dir a directory that exists and may be written",
            marks=pytest.mark.long,
        ),
        (["--host", "256.256.256.256", "--insecure"], "cannot listen on 256.256.256.256:0: "),
        (["--tls-cert", "pyproject.toml", "--tls-key", "pyproject.toml"], "are not a certificate and its key"),
    ],
)
def test_it_does_not_start(options: list[str], words: str) -> None:
    check_refused(options, words)


def test_a_port_that_somebody_has() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check_refused(["--port", str(port)], f"cannot listen on 127.0.0.1:{port}: Address already in use")


def check_refused(options: list[str], words: str) -> None:
    ended = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert ended.returncode == 1
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2, "it says one thing, and a hint"


def test_a_short_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")
    ended = subprocess.run(
        [*COMMAND, "--token-file", str(tmp_path / "token")], capture_output=True, text=True, timeout=60, check=False
    )
    assert "at least 16 characters" in ended.stderr
