"""The script itself, in a process of its own: what only shows there."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys

import pytest

from tests.unit.cli.conftest import Invoke

FORCED = ("--set", "sparkfusion.bytes_per_partition=1", "--set", "sparkfusion.task_cores=1", "--partitions", "2")
SCRIPT = (sys.executable, "-c", "import sys; from sparkfusion.cli import main; sys.exit(main())")


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").stdout.startswith("sparkfusion, version 0.")


@pytest.mark.parametrize("command", ["sql", "explain", "verify"])
def test_help_has_examples(invoke: Invoke, command: str) -> None:
    shown = invoke(command, "--help").stdout
    assert f"sparkfusion {command} " in shown.partition("Examples:")[2]


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_it_says_which_one_to_install(missing: str) -> None:
    hide = f"import sys; sys.modules[{missing!r}] = None; from sparkfusion.cli import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", hide, "--version"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "pip install 'sparkfusion[cli]'" in result.stderr


@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_reader_that_stops_early_is_no_error(items: str, form: str) -> None:
    query = "select a.id from items a, items b where b.id < 100"
    process = subprocess.Popen(
        [*SCRIPT, "sql", "-c", query, "-t", items, "--format", form, "--max-rows", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        assert process.stdout.readline() == {"csv": "id\n", "table": "+-----+\n"}[form]
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_verify_ends_with_its_verdict_if_nobody_reads_the_report(items: str) -> None:
    process = subprocess.Popen(
        [*SCRIPT, "verify", "-c", "select id, count(*) from items group by id", "-t", items],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.close()
        assert "warning: the report was not read to its end" in process.stderr.read()
        assert process.wait(60) == 0


@pytest.mark.parametrize("closed", ["0", *(pytest.param(which, marks=pytest.mark.long) for which in ("1", "2")), "1 2"])
def test_standard_streams_may_be_closed(closed: str) -> None:
    """As cron and some daemons start programs."""
    close = f"[os.close(int(each)) for each in {closed.split()!r}]"
    closing = f"import os, sys; {close}; os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", closing, *SCRIPT, "sql", "-c", "select 1 as one", "--format", "csv"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == ("" if "1" in closed else "one\n1\n")


@pytest.mark.parametrize("delay", [0.0, 0.01, 1.0], ids=["at once", "while planning", "while running"])
def test_ctrl_c_cancels_a_query(items: str, delay: float) -> None:
    endless = "select sum(a.id * b.id + c.id * d.id) from items a, items b, items c, items d"
    process = subprocess.Popen(
        [*SCRIPT, "sql", "-c", f"select 1 as started; {endless}", "--format", "csv", "-t", items, *FORCED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline() == "started\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(delay)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, "sparkfusion: cancelled\n")


@pytest.mark.parametrize("form", ["table", "csv"])
def test_on_a_terminal_the_progress_line_is_gone_before_the_rows(items: str, form: str) -> None:
    """Both outputs on one pseudo-terminal, as a person would see them."""
    ours, theirs = os.openpty()
    query = "select part, count(*) as counted from items group by part"
    process = subprocess.Popen(
        [*SCRIPT, "sql", "-c", query, "-t", items, "--format", form], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with process, os.fdopen(ours, "rb", buffering=0) as terminal:
        while chunk := _read(terminal):
            shown += chunk
    assert process.returncode == 0
    before, erased, after = shown.rpartition(b"\x1b[2K")
    assert erased
    assert b"counted" not in before
    assert b"counted" in after


def _read(terminal: io.FileIO) -> bytes:
    try:
        return terminal.read(65536) or b""
    except OSError:  # how Linux tells that the other end is closed
        return b""
