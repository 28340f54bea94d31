"""Who is used: lists, resolvers, versions, tokens; where tasks go; what extensions get."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion.errors import ExternalError, UserError
from sparkfusion.ids import TaskKey
from sparkfusion.runner.members import Member, Members
from sparkfusion.transport import schemes
from sparkfusion.transport.base import Access
from sparkfusion.transport.in_process import InProcessChannel
from sparkfusion.transport.membership import Cluster, RoutedTask, cluster_of
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.server import service as service_module
from sparkfusion.worker.server.rewrites import NamedRewrite, RewriteContext
from sparkfusion.worker.server.version import WorkerInfo, this_version
from sparkfusion.worker.server.worker_options import WorkerOptions
from tests.in_process_workers import InProcess, start_worker, stop_worker

EAGER = {"sparkfusion.bytes_per_partition": 1}
COUNT = "select k, count(*) as n from t group by k order by k"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for part in range(4):
        pq.write_table(pa.table({"k": [0, 1, 2], "v": [part] * 3}), tmp_path / f"{part}.parquet")
    return tmp_path


@pytest.fixture
def two() -> Iterator[list[str]]:
    addresses = [start_worker(WorkerOptions(2))[0] for _ in range(2)]
    yield addresses
    for address in addresses:
        stop_worker(address)


def test_a_text_names_workers_and_how_to_get_in(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of("flight+tls://a:1, b:2?token=t&ca=/c&cert=/x&key=/y")
    assert cluster.addresses() == ("flight+tls://a:1", "flight+tls://b:2")
    assert cluster.access() == Access("t", "/c", "/x", "/y")
    monkeypatch.setenv("SPARKFUSION_TOKEN", "from-the-environment")
    assert cluster_of("flight://a:1").access().token == "from-the-environment"
    with pytest.raises(UserError, match="no option 'tokn'"):
        cluster_of("flight://a:1?tokn=x")


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(Cluster(["flight://a:1"], token="hidden"))
    assert "hidden" not in repr(Access("hidden"))


@pytest.mark.parametrize("target", ["flght://h:1?token=hidden", ["flight://h:1?token=hidden"]])
def test_an_error_does_not_show_the_token_of_a_target(target: object) -> None:
    with pytest.raises(UserError, match=r"cannot connect to .*h:1\?…") as refused:
        sparkfusion.connect(target)
    assert "hidden" not in str(refused.value)


def test_an_error_names_the_schemes_that_users_can_connect_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemes, "entry_points", lambda **of: [])
    with pytest.raises(UserError) as refused:
        sparkfusion.connect("nowhere://")
    assert "(schemes: flight, flight+tls)" in (refused.value.hint or "")


def test_an_address_in_a_cluster_has_no_options() -> None:
    """Addresses are shown in errors and plans, so a token must not be a part of them."""
    address = "flight://h:1?token=hidden"
    text: Any = address
    for make in (lambda: Cluster([address]), lambda: Cluster(text), lambda: Cluster(lambda: [address]).addresses()):
        with pytest.raises(UserError, match="'flight://h:1'") as refused:
            make()
        assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("target", ["flight://", "flight://nowhere", "flight://host:notaport", "unknown://x", 7])
def test_what_cannot_be_connected_to(target: object) -> None:
    with pytest.raises(UserError):
        sparkfusion.connect(target)


def test_nobody_answers() -> None:
    with pytest.raises(ExternalError, match=r"none of 2 workers can be used: worker .*:1 does .*; worker .*:2 does"):
        sparkfusion.connect("flight://127.0.0.1:1,127.0.0.1:2?token=x")


@pytest.mark.parametrize(
    ("host", "words"), [("127.0.0.1", "nobody listens there"), ("no-such-host.invalid", "no host of that name")]
)
def test_nobody_is_there(host: str, words: str) -> None:
    with pytest.raises(ExternalError, match=f"worker flight://{host}:1 does not answer: .*{words}") as nobody:
        sparkfusion.connect(f"flight://{host}:1?token=x")
    assert nobody.value.hint == "is it running? sparkfusion worker --port 1"


def test_a_resolver_is_asked_for_each_query(two: list[str], table: Path) -> None:
    asked: list[int] = []

    def resolve() -> Sequence[str]:
        asked.append(len(asked))
        return two[:1] if len(asked) < 3 else two

    with sparkfusion.connect(resolve, config=EAGER) as session:
        session.register_parquet("t", str(table))
        places = []
        for _ in range(3):
            assert session.sql(COUNT).to_pylist() == [{"k": k, "n": 4} for k in range(3)]
            places.append(session._engine.describe_runner())
    assert len(asked) == 4
    assert ["on 1 worker " in place for place in places] == [True, False, False]


def test_a_resolver_that_finds_nobody() -> None:
    with pytest.raises(UserError, match="no workers"):
        sparkfusion.connect(list)


def test_a_worker_of_another_version_is_left_out(
    two: list[str], table: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    info = InProcessChannel.info

    def other(self: InProcessChannel) -> WorkerInfo:
        return replace(info(self), datafusion="54.0.0") if self.address == two[0] else info(self)

    monkeypatch.setattr(InProcessChannel, "info", other)
    caplog.set_level(logging.WARNING, "sparkfusion")
    with sparkfusion.connect(Cluster(two), config=EAGER) as session:
        session.register_parquet("t", str(table))
        assert session.sql(COUNT).count() == 3
        assert f"a worker is not used: worker {two[0]} has datafusion 54.0.0 instead of" in caplog.text
        assert "on 1 worker " in session._engine.describe_runner()
    with pytest.raises(UserError, match=r"has datafusion 54\.0\.0 instead of"):
        sparkfusion.connect(Cluster(two[:1]))


def test_routing_decides_where_tasks_run(two: list[str], table: Path) -> None:
    seen: list[RoutedTask] = []

    def route(task: RoutedTask, members: Sequence[str]) -> str | None:
        seen.append(task)
        return two[1] if two[1] in members else None

    ran: dict[str, int] = dict.fromkeys(two, 0)
    with counted(ran), sparkfusion.connect(Cluster(two, routing=route), config=EAGER | one_at_a_time()) as session:
        session.register_parquet("t", str(table))
        assert session.sql("select v from t where v >= 0").count() == 12
    assert seen
    assert ran[two[1]] > 0


def one_at_a_time() -> dict[str, object]:
    return {"datafusion.execution.target_partitions": 2}


class counted:  # noqa: N801
    """Counts tasks of each in-process worker."""

    def __init__(self, ran: dict[str, int]) -> None:
        self._ran = ran
        self._run = InProcessChannel.run

    def __enter__(self) -> None:
        run, ran = self._run, self._ran

        def counting(channel: InProcessChannel, *arguments: Any) -> Any:
            ran[channel.address] += 1
            return run(channel, *arguments)

        InProcessChannel.run = counting  # type: ignore[assignment, method-assign]

    def __exit__(self, *error: object) -> None:
        InProcessChannel.run = self._run  # type: ignore[method-assign]


class Busy:
    """A lease on a worker that others keep busy."""

    def __init__(self, others: int) -> None:
        self._others = others

    def others(self) -> int:
        return self._others

    def close(self) -> None:
        return


@pytest.mark.parametrize(("others", "chosen"), [((0, 1), 0), ((1, 0), 1), ((3, 2), 1)])
def test_tasks_go_where_others_leave_room(two: list[str], others: tuple[int, int], chosen: int) -> None:
    members = [Member(connect(address, Access()), this_version(2)) for address in two]
    for member, count in zip(members, others, strict=True):
        member.lease = Busy(count)
    task = RoutedTask(TaskKey("q1", 1, 0), {})
    with Members(members, None).place_task(task, (), CancelToken()) as member:
        assert member.address == two[chosen]


def test_an_extension_changes_plans_on_the_worker(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[RewriteContext] = []

    def rewrite(plan: bytes, context: RewriteContext) -> bytes:
        told.append(context)
        return plan

    monkeypatch.setattr(service_module, "installed_rewrites", lambda: [NamedRewrite("test", rewrite)])
    address, _ = start_worker(WorkerOptions(2))
    with sparkfusion.connect(Cluster([address], extensions={"locale": "de"}), config=EAGER) as session:
        session.register_parquet("t", str(table))
        assert session.sql(COUNT).count() == 3
    stop_worker(address)
    assert told
    assert all(each.extensions == {"locale": "de"} for each in told)


def test_a_transport_of_somebody_else_is_found_by_its_scheme(
    two: list[str], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pigeons:
        def connect(self, address: str, access: Access) -> InProcessChannel:
            return InProcess().connect(address.replace("pigeon://", "in-process://"), access)

    class Entry:
        name = "pigeon"

        def load(self) -> Callable[[], Pigeons]:
            return Pigeons

    def entries(group: str, name: str = "pigeon") -> list[Entry]:
        return [Entry()] if group == schemes.TRANSPORTS and name == "pigeon" else []

    monkeypatch.setattr(schemes, "entry_points", entries)
    target = two[0].replace("in-process://", "pigeon://")
    with sparkfusion.connect(target, config=EAGER) as session:
        session.register_parquet("t", str(table))
        assert session.sql("select v from t where v >= 0").count() == 12
