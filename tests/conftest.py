"""Options and fixtures of every test, and the check that a test leaves nothing behind."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests import leaks, runners
from tests.connect_server import connect_session
from tests.runners import Runner
from tests.spark_session import scratch_of, spark_session
from tests.worker_processes import WorkerProcess, url_of, worker_processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    from sparkfusion import Session

SHARED = "connect_shared"
# Spark Connect's client may run in a process that starts a JVM later. gRPC's own handlers of a fork, on by default, can
# end the child before it becomes the JVM.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ["SPARKFUSION_CONFIG"] = ""  # no file of the person who runs the tests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fuzz-cases", type=int, default=30, metavar="N", help="random queries each fuzz test tries (default: 30)"
    )
    parser.addoption(
        "--jvms", type=int, default=0, metavar="N", help="with -n: how many of the processes start Spark (default: any)"
    )
    parser.addoption(
        "--standalone", action="store_true", help="run behaviour tests on a standalone Spark cluster, and nowhere else"
    )


@pytest.fixture(scope="session")
def fuzz_cases(request: pytest.FixtureRequest) -> int:
    """How many random cases a fuzz test should try."""
    return int(request.config.getoption("--fuzz-cases"))


class Connect(Protocol):
    """Opens a session that is closed when the fixture ends."""

    def __call__(self, config: Mapping[str, object] | None = None) -> Session: ...


@pytest.fixture(scope="session")
def runner_name(request: pytest.FixtureRequest) -> str:
    """The name of the runner that sessions of `connect` use; behaviour suites run once for each."""
    return str(request.param)


@pytest.fixture(scope="session")
def runner(
    runner_name: str,
    request: pytest.FixtureRequest,
    private_temporary_directory: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Runner:
    """The runner that sessions of `connect` use."""
    settings = dict({**runners.RUNNERS, **runners.WIDE, **runners.CLUSTERS}[runner_name])
    target: Any = request.getfixturevalue("spark") if runner_name in runners.ON_SPARK else None
    if runner_name == runners.CONNECT:
        target = request.getfixturevalue("remote_spark")
    if runner_name == runners.STANDALONE:
        target = request.getfixturevalue("standalone_spark")
    if runner_name in runners.WORKERS:
        target = url_of(request.getfixturevalue("workers")[: runners.WORKERS[runner_name]])
    watched: list[tuple[Path, str]] = []
    if settings.get("sparkfusion.store") == "shared":
        directory = tmp_path_factory.mktemp("shared")
        settings["sparkfusion.store_dir"] = str(directory)
        watched.append((directory, "*"))
    if settings.get("sparkfusion.store") == "spark":
        watched.append((scratch_of(target), "**/shuffle_*"))
    if runner_name == runners.RESIDENT:
        watched.append((scratch_of(target), f"**/{leaks.FILE_PREFIX}*"))
    return Runner(runner_name, target, settings, tuple(watched))


@pytest.fixture(scope="session")
def spark(private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the run, from the first test that needs it until the end."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def standalone_spark(
    private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The session on a standalone cluster, in a run with `--standalone`."""
    from tests.cluster.standalone import standalone_session

    with standalone_session(tmp_path_factory.mktemp("standalone")) as session:
        yield session


@pytest.fixture(scope="session")
def remote_spark(
    private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectSession]:
    """The one Spark Connect session of the run, at a server of its own, until the end."""
    with connect_session(tmp_path_factory.mktemp("connect-server")) as session:
        yield session


@pytest.fixture(scope="session")
def workers(
    private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[WorkerProcess]]:
    """Three Flight workers, from the first test that needs them until the end."""
    with worker_processes(tmp_path_factory.mktemp("workers"), 3) as started:
        yield started


@pytest.fixture
def connect(runner: Runner) -> Iterator[Connect]:
    """Open sessions: `session = connect({"sparkfusion.bytes_per_partition": 1})`."""
    with ExitStack() as stack:
        yield _connector(runner, stack)


@pytest.fixture(scope="module")
def connect_shared(runner: Runner) -> Iterator[Connect]:
    """Like `connect`, for module-scoped fixtures: sessions live as long as the module's tests, and are checked then."""
    with leaks.watched(*runner.watched):
        before = leaks.take()
        with ExitStack() as stack:
            yield _connector(runner, stack)
        _fail_on(leaks.since(before), "this module's tests")


def _connector(runner: Runner, stack: ExitStack) -> Connect:
    import sparkfusion

    def connect(config: Mapping[str, object] | None = None) -> Session:
        settings = {**runner.settings, **(config or {})}
        return stack.enter_context(sparkfusion.connect(runner.target, config=settings))

    return connect


@pytest.fixture(scope="session", autouse=True)
def private_temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary directory for this run alone: another run on this machine must not look like a leak of ours.

    It is one of pytest's, which keeps those of the last runs: reproducers of failures can be looked at.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest, private_temporary_directory: None) -> Iterator[None]:
    """No process, thread or file of ours outlives a test."""
    if SHARED in request.fixturenames:
        yield
        return
    # Only what this test's runner watches: Spark's own shuffles go when its garbage collector has time.
    watched = request.getfixturevalue("runner").watched if "runner" in request.fixturenames else ()
    with leaks.watched(*watched):
        before = leaks.take()
        yield
        _fail_on(leaks.since(before), "this test")


def _fail_on(left: list[str], who: str) -> None:
    if left:
        pytest.fail(f"{who} left behind: {'; '.join(left)}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """A run that was started in the background may ignore Ctrl-C, and so would every process that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for marker in runners.MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(tryfirst=True)  # the runner's name comes first in a test's id
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "runner_name" in metafunc.fixturenames:
        names = runners.parameters_for(metafunc.definition)
        metafunc.parametrize("runner_name", names, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)  # after pytest has brought tests with the same fixtures together
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = runners.in_order(items, spark_first=hasattr(config, "workerinput"))


@pytest.hookimpl(optionalhook=True)  # a run without pytest-xdist has no processes to share the tests
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.shares import Shares

    return Shares(config, log)
