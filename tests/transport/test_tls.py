"""TLS and mutual TLS, with certificates made here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trustme

import sparkfusion
from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.transport.base import Access
from sparkfusion.transport.membership import RoutedTask
from tests.transport.conftest import StartWorker
from tests.worker_processes import IDLE, TOKEN, WorkerProcess


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority `ca`, what it signed for workers (`worker`) and coordinators (`us`), and a stranger's own."""
    place = tmp_path_factory.mktemp("certificates")
    authorities = {name: trustme.CA() for name in ("ca", "stranger-ca")}
    for name, authority in authorities.items():
        authority.cert_pem.write_to_path(str(place / f"{name}.pem"))
    for name, signed_by in (("worker", "ca"), ("us", "ca"), ("stranger", "stranger-ca")):
        made = authorities[signed_by].issue_cert("localhost", "127.0.0.1")
        made.private_key_pem.write_to_path(str(place / f"{name}.key"))
        for part in made.cert_chain_pems:
            part.write_to_path(str(place / f"{name}.pem"), append=True)
    return place


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for part in range(4):
        pq.write_table(pa.table({"k": list(range(50)), "v": [part] * 50}), tmp_path / "t" / f"{part}.parquet")
    return tmp_path / "t"


def shown(place: Path, name: str) -> list[str]:
    return ["--tls-cert", str(place / f"{name}.pem"), "--tls-key", str(place / f"{name}.key")]


SLOTS = ("--slots", "8", "--no-task-processes")  # threads, because processes start slowly
EAGER = {"sparkfusion.bytes_per_partition": 1}
SUMS = "select k, sum(v) as s from t group by k order by k"


def in_turn(task: RoutedTask, free: Sequence[str]) -> str:
    """So that both workers have frames that the other one reads."""
    return sorted(free)[task.key.task % len(free)]


def one_sided(workers: list[WorkerProcess], certificates: Path) -> sparkfusion.Cluster:
    """Workers show certificates, we show the token only."""
    addresses = [worker.address for worker in workers]
    return sparkfusion.Cluster(addresses, token=TOKEN, ca=f"{certificates}/ca.pem", routing=in_turn)


@pytest.mark.long
def test_workers_trust_each_other_without_asking_callers(
    start_worker: StartWorker, certificates: Path, table: Path
) -> None:
    options = [*shown(certificates, "worker"), "--tls-peer-ca", str(certificates / "ca.pem"), *SLOTS]
    workers = [start_worker(*options) for _ in range(2)]
    with sparkfusion.connect(one_sided(workers, certificates), config=EAGER) as session:
        session.register_parquet("t", str(table))
        query = session.sql(SUMS).stream()
        assert query.read_all().to_pylist() == [{"k": k, "s": 6} for k in range(50)]
        assert any(report.fetched for report in query.reports() if report.key.stage != 0)


@pytest.mark.long
def test_workers_that_do_not_trust_each_other_say_so(
    start_worker: StartWorker, certificates: Path, table: Path
) -> None:
    workers = [start_worker(*shown(certificates, "worker"), *SLOTS) for _ in range(2)]
    with sparkfusion.connect(one_sided(workers, certificates), config=EAGER) as session:
        session.register_parquet("t", str(table))
        with pytest.raises(UserError, match="cannot establish TLS") as refused:
            session.sql(SUMS).collect()
    assert "--tls-peer-ca" in (refused.value.hint or "")


def test_two_workers_and_a_coordinator_that_know_each_other(
    start_worker: StartWorker, certificates: Path, table: Path
) -> None:
    options = [*shown(certificates, "worker"), "--tls-ca", str(certificates / "ca.pem"), "--host", "127.0.0.1"]
    workers = [start_worker(*options) for _ in range(2)]
    assert workers[0].address.startswith("flight+tls://")
    places = ",".join(worker.address.partition("://")[2] for worker in workers)
    ours = f"ca={certificates}/ca.pem&cert={certificates}/us.pem&key={certificates}/us.key"
    with sparkfusion.connect(f"flight+tls://{places}?token={TOKEN}&{ours}", config=EAGER) as session:
        session.register_parquet("t", str(table))
        rows = session.sql(SUMS).to_pylist()
        assert rows == [{"k": k, "s": 6} for k in range(50)]
    access = Access(TOKEN, f"{certificates}/ca.pem", f"{certificates}/us.pem", f"{certificates}/us.key")
    for worker in workers:
        channel = worker.channel(access)
        assert channel.status() == IDLE
        channel.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        "ca={0}/stranger-ca.pem&cert={0}/us.pem&key={0}/us.key",
        "ca={0}/ca.pem",
        "ca={0}/ca.pem&cert={0}/stranger.pem&key={0}/stranger.key",
    ],
    ids=["another authority", "no certificate of ours", "a stranger's certificate"],
)
def test_strangers_are_not_talked_to(start_worker: StartWorker, certificates: Path, options: str) -> None:
    worker = start_worker(*shown(certificates, "worker"), "--tls-ca", str(certificates / "ca.pem"))
    with pytest.raises(SparkfusionError, match="worker"):
        sparkfusion.connect(f"{worker.address}?token={TOKEN}&{options.format(certificates)}")


def test_talking_in_the_clear_to_a_worker_with_tls(start_worker: StartWorker, certificates: Path) -> None:
    worker = start_worker(*shown(certificates, "worker"))
    with pytest.raises(SparkfusionError, match="worker"):
        sparkfusion.connect(f"{worker.address.replace('+tls', '')}?token={TOKEN}")
