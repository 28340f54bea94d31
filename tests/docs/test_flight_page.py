"""`docs/flight.md`: its commands start workers, its package is installed there, and its snippets run on them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trustme

from tests.docs.snippets import ROOT, run_snippets
from tests.installed_package import install
from tests.worker_processes import COMMAND

PAGE = ROOT / "docs" / "flight.md"
_TOKEN = re.compile(r"^\$ (export SPARKFUSION_TOKEN=.*)$", re.MULTILINE)
_WORKER = re.compile(r"^\$ sparkfusion (worker --port (\d+).*) &$", re.MULTILINE)
_MODULE = re.compile(r"^```python\n# (\w+)\.py\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PYPROJECT = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_OPTIONS = re.compile(r"^\| (`--.*?) \|", re.MULTILINE)


@pytest.mark.long
def test_the_commands_and_snippets_run(lineitem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text()
    monkeypatch.setenv("SPARKFUSION_TOKEN", exported_token(text))
    packages = installed_package(text, lineitem / "site")
    write_certificates(lineitem)
    commands = _WORKER.findall(text)
    assert len(commands) == text.count("$ sparkfusion ")
    with ExitStack() as stack:
        for command, port in commands:
            says = stack.enter_context(running(command.replace(f"--port {port}", "--port 0"), packages))
            (free,) = re.findall(r"127\.0\.0\.1:(\d+)", says)
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
            assert f"&\n{says}" in text
        printed = run_snippets(PAGE, text=text)
    for words in (
        "on 2 workers with",
        "on 1 worker with",
        "WorkerStatus(running=0, queries=0, files=0, bytes=0)",
        "stage 0, task 0, attempt 0 (Fetched(exchange=",
        "tenant red is not served here",
    ):
        assert words in printed


def test_the_table_of_options_is_that_of_the_command() -> None:
    from sparkfusion.cli.commands.worker import worker

    told = {option for row in _OPTIONS.findall(PAGE.read_text()) for option in re.findall(r"--[\w-]+", row)}
    assert told == {option for parameter in worker.params for option in (*parameter.opts, *parameter.secondary_opts)}


def exported_token(text: str) -> str:
    (command,) = _TOKEN.findall(text)
    shell = ["bash", "-c", f"{command} && printenv SPARKFUSION_TOKEN"]
    return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.strip()


def installed_package(text: str, site: Path) -> Path:
    """The module that the page shows, with the entry points that it shows."""
    ((name, source),) = _MODULE.findall(text)
    (pyproject,) = _PYPROJECT.findall(text)
    return install(site, name, source, tomllib.loads(pyproject)["project"]["entry-points"])


def write_certificates(place: Path) -> None:
    """The files that the page speaks of: an authority, and what it signed for a worker and for us."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(place / "ca.pem"))
    for name in ("worker", "us"):
        made = authority.issue_cert("127.0.0.1")
        made.private_key_pem.write_to_path(str(place / f"{name}.key"))
        for part in made.cert_chain_pems:
            part.write_to_path(str(place / f"{name}.pem"), append=True)


@contextmanager
def running(command: str, packages: Path) -> Iterator[str]:
    """A command of the page in a process of its own; the line that it prints when it is ready."""
    path = os.pathsep.join(map(str, (ROOT, packages)))
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *shlex.split(command)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as worker:
        assert worker.stdout is not None
        try:
            yield worker.stdout.readline()
        finally:
            worker.terminate()
