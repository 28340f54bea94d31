"""Transports and plan rewrites of packages that are really installed, in real workers and coordinators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from tests.installed_package import install
from tests.runners import SPLIT
from tests.worker_processes import IDLE, ROOT, TOKEN, WorkerProcess, url_of

TRANSPORTS, REWRITES = "sparkfusion.transports", "sparkfusion.plan_rewrites"  # as packages write them
MODULES = Path(__file__).parent / "extension"
SLOTS = ("--slots", "8", "--no-task-processes")
"""A free one for every task that is a worker's turn. Threads, because processes start slowly."""
EAGER = {"sparkfusion.bytes_per_partition": 1, **SPLIT}
KEYS = range(5)
ROWS = [{"k": k, "n": 4} for k in KEYS]
WORDS = "select word, count(*) as n from t where word = 'house' group by word"


def ask(site: Path, target: str | list[str], table: Path) -> dict[str, Any]:
    """What a coordinator says, in whose process this site's packages are installed."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.transport.coordinator", json.dumps({"target": target, "table": str(table)})],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"},
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files. The words that are asked for are neither the first nor the last: plans carry these as statistics."""
    directory = tmp_path_factory.mktemp("t")
    columns = pa.table({"k": list(KEYS), "word": ["ape", "house", "mouse", "mouse", "zebra"]})
    for part in range(4):
        pq.write_table(columns, directory / f"{part}.parquet")
    return directory


# ---- transports


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package with the scheme `counted` is installed."""
    source = (MODULES / "counted_flight.py").read_text()
    entry_points = {TRANSPORTS: {"counted": "counted_flight:CountedFlight"}}
    return install(tmp_path_factory.mktemp("counted"), "counted_flight", source, entry_points)


@pytest.fixture(scope="module")
def pair(counted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[WorkerProcess]]:
    """Two workers that know the scheme."""
    place = tmp_path_factory.mktemp("pair")
    with (
        WorkerProcess(place / "a", *SLOTS, packages=counted) as a,
        WorkerProcess(place / "b", *SLOTS, packages=counted) as b,
    ):
        yield [a, b]


@pytest.fixture
def calls(counted: Path) -> Path:
    """The file of calls, empty."""
    file = counted / "calls"
    file.write_text("")
    return file


def made(calls: Path, pid: int) -> Counter[tuple[str, str]]:
    """How often a process made which call to which address."""
    lines = [line.split() for line in calls.read_text().splitlines()]
    return Counter((call, address) for caller, call, address in lines if int(caller) == pid)


def counted_address(worker: WorkerProcess) -> str:
    return worker.address.replace("flight://", "counted://")


def test_a_scheme_of_a_package_carries_every_call(
    pair: list[WorkerProcess], counted: Path, calls: Path, table: Path
) -> None:
    answer = ask(counted, url_of(pair).replace("flight://", "counted://"), table)
    assert answer.get("rows") == ROWS, answer
    ours = made(calls, answer["pid"])
    addresses = [counted_address(worker) for worker in pair]
    assert {address for _, address in ours} == set(addresses)
    assert [ours["hold", address] for address in addresses] == [1, 1]
    assert sum(ours["run", address] for address in addresses) == answer["tasks"] > 0
    assert all(ours["close", address] for address in addresses)
    assert [worker.status() for worker in pair] == [IDLE, IDLE]


@pytest.mark.long
def test_workers_fetch_frames_from_each_other_by_that_scheme(
    pair: list[WorkerProcess], counted: Path, calls: Path, table: Path
) -> None:
    a, b = pair
    answer = ask(counted, [counted_address(a), counted_address(b)], table)
    assert answer.get("rows") == ROWS, answer
    of_a, of_b = (made(calls, worker.process.pid) for worker in pair)
    assert {address for _, address in of_a} == {counted_address(b)}
    assert {address for _, address in of_b} == {counted_address(a)}
    assert of_a["read", counted_address(b)] + of_b["read", counted_address(a)] == len(answer["fetched"])
    assert all(answer["fetched"])


@pytest.mark.long
def test_workers_without_the_package_cannot_fetch(counted: Path, table: Path, tmp_path: Path) -> None:
    with WorkerProcess(tmp_path / "a", *SLOTS) as a, WorkerProcess(tmp_path / "b", *SLOTS) as b:
        answer = ask(counted, [counted_address(a), counted_address(b)], table)
        assert answer["raised"] == "UserError"
        assert "a worker cannot read from counted://127.0.0.1:" in answer["says"]
        assert "there is no transport for 'counted://127.0.0.1:" in answer["says"]
        assert "every worker needs the packages that the coordinator has installed" in answer["says"]
        assert "\n  in query " in answer["says"], "it was not a task that failed"
        assert [worker.status() for worker in (a, b)] == [IDLE, IDLE]


@pytest.mark.parametrize(
    "target",
    [["other://127.0.0.1:1"], "other://127.0.0.1:1?token=x"],
    ids=["in a list", "in a text"],
)
def test_an_unknown_scheme_is_told_which_there_are(counted: Path, table: Path, target: str | list[str]) -> None:
    answer = ask(counted, target, table)
    assert answer["raised"] == "UserError"
    assert "'other://127.0.0.1:1" in answer["says"]
    assert "counted, flight, flight+tls" in answer["says"]


@pytest.mark.long
def test_a_transport_that_cannot_be_imported_is_named(table: Path, tmp_path: Path) -> None:
    site = install(tmp_path / "site", "waves", "import nowhere_to_be_found", {TRANSPORTS: {"radio": "waves:Radio"}})
    answer = ask(site, "radio://127.0.0.1:1?token=x", table)
    assert answer["raised"] == "UserError"
    assert "radio" in answer["says"]
    assert "No module named 'nowhere_to_be_found'" in answer["says"]


# ---- plan rewrites


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """A worker with a package of plan rewrites, which this process does not have."""
    source = (MODULES / "plan_office.py").read_text()
    rewrites = {name: f"plan_office:{name}" for name in ("swap", "trace", "gate", "stumble")}
    site = install(tmp_path_factory.mktemp("office"), "plan_office", source, {REWRITES: rewrites})
    with WorkerProcess(tmp_path_factory.mktemp("worker"), *SLOTS, packages=site) as worker:
        yield worker
        assert worker.status() == IDLE


def connect(worker: WorkerProcess, **extensions: str) -> sparkfusion.Session:
    cluster = sparkfusion.Cluster([worker.address], token=TOKEN, extensions=extensions)
    return sparkfusion.connect(cluster, config=EAGER)


@pytest.mark.parametrize(
    ("extensions", "found"),
    [({}, {"word": "house", "n": 4}), ({"swap": "house=mouse"}, {"word": "mouse", "n": 8})],
    ids=["as it came", "rewritten"],
)
def test_the_plan_that_a_rewrite_gives_is_what_runs(
    office: WorkerProcess, table: Path, extensions: dict[str, str], found: dict[str, object]
) -> None:
    with connect(office, **extensions) as session:
        session.register_parquet("t", str(table))
        assert session.sql(WORDS).to_pylist() == [found]


def test_a_rewrite_is_told_of_every_task_on_the_worker(office: WorkerProcess, table: Path, tmp_path: Path) -> None:
    with connect(office, trace=str(tmp_path / "trace")) as session:
        session.register_parquet("t", str(table))
        query = session.sql(WORDS).stream()
        query.read_all()
    on_the_worker = {str(report.key) for report in query.reports() if report.key.stage != 0}
    assert on_the_worker
    assert sorted((tmp_path / "trace").read_text().splitlines()) == sorted(on_the_worker)


def test_a_rewrite_may_refuse_a_plan(office: WorkerProcess, table: Path) -> None:
    with connect(office, tenant="red") as session:
        session.register_parquet("t", str(table))
        with pytest.raises(sparkfusion.UserError, match="tenant red is not served here") as refused:
            session.sql(WORDS).collect()
    assert refused.value.hint == "ask the office"
    assert refused.value.where is not None
    with connect(office, tenant="blue") as session:
        session.register_parquet("t", str(table))
        assert session.sql(WORDS).to_pylist() == [{"word": "house", "n": 4}]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", "ValueError: the policy has no page 7"),
        ("exit", "SystemExit: 3"),
        ("nothing", "NoneType instead of plan bytes"),
        ("nonsense", "not a DataFusion plan"),
    ],
)
def test_a_rewrite_that_fails_is_named(office: WorkerProcess, table: Path, how: str, words: str) -> None:
    with connect(office, stumble=how) as session:
        session.register_parquet("t", str(table))
        with pytest.raises(sparkfusion.UserError, match=words) as failed:
            session.sql(WORDS).collect()
    assert "stumble" in failed.value.message


def test_a_rewrite_whose_service_is_away_is_tried_again(office: WorkerProcess, table: Path) -> None:
    with connect(office, stumble="away") as session:
        session.register_parquet("t", str(table))
        with pytest.raises(sparkfusion.ExternalError, match="'stumble' failed: ConnectionError: the policy") as failed:
            session.sql(WORDS).collect()
    assert failed.value.where is not None
    assert failed.value.where.attempt > 0


@pytest.mark.long
def test_a_worker_names_a_rewrite_that_cannot_be_imported(tmp_path: Path) -> None:
    site = install(tmp_path / "site", "ink", "import nowhere_to_be_found", {REWRITES: {"stamp": "ink:stamp"}})
    with pytest.raises(RuntimeError, match="did not start") as failed:
        WorkerProcess(tmp_path / "worker", packages=site)
    assert "No module named 'nowhere_to_be_found'" in str(failed.value)
    assert "stamp" in str(failed.value)
    assert "Traceback" not in str(failed.value)
