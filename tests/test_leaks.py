"""The leak check itself: it must fail on everything it promises to find, and on nothing else."""

from __future__ import annotations

import pytest

from tests.suites.inner_run import Run


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a test file under our conftest, on the embedded runner only."""
    return Run(pytester, monkeypatch, "-k", "not spark and not flight")


def test_a_native_thread_that_called_python_is_no_leak(run: Run) -> None:
    run(
        """
        import _thread
        import threading

        named = threading.Event()
        never = threading.Event()

        def native():
            threading.current_thread()
            named.set()
            never.wait()

        def test_native():
            _thread.start_new_thread(native, ())
            named.wait()
            assert any(thread.name.startswith("Dummy-") for thread in threading.enumerate())
        """
    ).assert_outcomes(passed=1)


def test_a_clean_test_passes(run: Run) -> None:
    run("def test_clean(): pass").assert_outcomes(passed=1)


def test_a_left_thread_is_named(run: Run) -> None:
    result = run(
        """
        import threading

        def test_thread():
            threading.Thread(target=threading.Event().wait, name="forgotten", daemon=True).start()
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*this test left behind: daemon thread 'forgotten'*"])


def test_a_left_process_is_named(run: Run) -> None:
    result = run(
        """
        import subprocess

        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def ended():
            yield
            process.kill()
            process.wait()

        def test_process():
            global process
            process = subprocess.Popen(["sleep", "60"])
        """
    )
    result.stdout.fnmatch_lines(["*this test left behind: process * (sleep 60)*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_left_files_are_named(run: Run) -> None:
    result = run(
        """
        import tempfile

        def test_file():
            tempfile.mkdtemp(prefix="sparkfusion-")
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*this test left behind: file *sparkfusion-*"])


@pytest.mark.parametrize(("owner", "leaked"), [("os.getpid()", True), ("os.getppid()", False)])
def test_files_in_shared_memory_belong_to_the_process_they_name(run: Run, owner: str, leaked: bool) -> None:
    result = run(
        f"""
        import os
        import shutil
        import tempfile

        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def removed():
            yield
            shutil.rmtree(made)

        def test_file():
            global made
            made = tempfile.mkdtemp(prefix=f"sparkfusion-{{{owner}}}-", dir="/dev/shm")
        """
    )
    result.assert_outcomes(passed=1, errors=1 if leaked else 0)


def test_what_shared_sessions_leave_is_found_when_their_module_ends(run: Run) -> None:
    result = run(
        """
        import threading

        import pytest

        @pytest.fixture(scope="module")
        def session(connect_shared):
            session = connect_shared({"sparkfusion.slots": 2})
            assert str(session.config["sparkfusion.slots"]) == "2"
            return session

        def test_start(session):
            threading.Thread(target=threading.Event().wait, name="forgotten", daemon=True).start()

        def test_still_fine(session):
            assert session.sql("select 1 as one").to_pylist() == [{"one": 1}]
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*this module's tests left behind: daemon thread 'forgotten'*"])


def test_a_runner_watches_directories_for_its_own_tests_only(run: Run) -> None:
    result = run(
        """
        from pathlib import Path

        import pytest

        from tests.runners import Runner

        @pytest.fixture(scope="session")
        def directory(tmp_path_factory):
            return tmp_path_factory.mktemp("scratch")

        @pytest.fixture(scope="session")
        def runner(directory):
            return Runner("spark-spark", watched=((directory, "**/shuffle_*"),))

        def test_on_the_runner(runner, directory):
            Path(directory, "shuffle_1").touch()

        def test_elsewhere(directory):
            Path(directory, "shuffle_2").touch()
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*this test left behind: file *shuffle_1"])


def test_connect_closes_its_sessions(run: Run) -> None:
    run(
        """
        import pyarrow as pa

        def test_connect(connect):
            session = connect({"sparkfusion.bytes_per_partition": 1, "sparkfusion.memory_table_bytes": 1})
            session.from_arrow(pa.table({"a": list(range(1000))}), name="t")
            stream = session.sql("select a, count(*) from t group by a").stream()
            next(stream)
        """
    ).assert_outcomes(passed=1)


def test_something_that_is_just_ending_is_no_leak(run: Run) -> None:
    run(
        """
        import threading

        def test_thread():
            threading.Timer(0.05, lambda: None).start()
        """
    ).assert_outcomes(passed=1)


def test_a_look_around_is_quick_without_child_processes(run: Run) -> None:
    run(
        """
        import time
        from tests import leaks

        def seconds_of_a_look():
            start = time.perf_counter()
            leaks.take()
            return time.perf_counter() - start

        def test_quick():
            assert min(seconds_of_a_look() for _ in range(20)) < 0.002
        """
    ).assert_outcomes(passed=1)
