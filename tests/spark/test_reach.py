"""A store that executors do not share is found out before the first query, whatever the reason."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkfusion import ExternalError, ResourceError, UserError
from sparkfusion.errors import StoreFullError
from sparkfusion.runner.spark import reach
from sparkfusion.runner.spark.reach import Visit, check_reach, visit_place
from sparkfusion.versions import describe_environment
from tests.suites.fake_s3 import KEY, SECRET, FakeS3, fake_s3

HOST = describe_environment()["host"]


@pytest.fixture
def context(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkContext:
    """As if no store had been tried before."""
    monkeypatch.setattr(reach, "_reached", weakref.WeakKeyDictionary())
    return spark.sparkContext


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


def test_a_shared_directory_is_reached_and_left_empty(
    context: SparkContext, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []
    is_there = reach._is_there

    def look(place: str, name: str) -> bool:
        seen.extend(Path(place).glob("*.arrow"))
        return is_there(place, name)

    monkeypatch.setattr(reach, "_is_there", look)
    check_reach(context, str(store))
    assert len(set(seen)) == 1 + context.defaultParallelism  # the token, and a file of each task
    assert list(store.iterdir()) == []
    check_reach(context, f"file://{store}")
    assert list(store.iterdir()) == []


def test_a_store_is_tried_once(context: SparkContext, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_reach(context, str(store))
    monkeypatch.setattr(context, "parallelize", None)
    check_reach(context, str(store))
    with pytest.raises(ExternalError):
        check_reach(context, f"{store}/")


def test_a_path_that_is_another_directory_for_the_tasks(
    context: SparkContext, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster without a mount: the same name, and something else behind it in each process."""
    monkeypatch.chdir(store.parent)  # the workers are elsewhere
    path = "/proc/self/cwd/store"
    assert Path(path).samefile(store)
    with pytest.raises(ResourceError) as caught:
        check_reach(context, path)
    assert caught.value.message == (
        f"the directory {path!r} is not shared with the executor on {HOST}: the file that the driver wrote is not there"
    )
    assert "mount the same directory at this path on the machine of the driver and on every node" in str(caught.value)
    assert "sparkfusion.store=spark" in str(caught.value)
    assert list(store.iterdir()) == []
    with pytest.raises(ResourceError):  # still not
        check_reach(context, path)


def test_what_a_task_wrote_must_come_back(context: SparkContext, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, or a mount that keeps changes to itself."""
    monkeypatch.setattr(reach, "_send", lambda *_: [Visit("node-3", left="nothing.arrow")])
    with pytest.raises(ResourceError, match="on node-3: the driver does not see files written there"):
        check_reach(context, str(store))
    assert list(store.iterdir()) == []


def test_what_a_task_reads_must_be_the_drivers(store: Path) -> None:
    (store / "token.arrow").write_text("of another query")
    assert list(visit_place(str(store), "token", "the driver", [0])) == [
        Visit(HOST, problem="another file is there in place of the driver's")
    ]


def test_tasks_of_another_user(store: Path) -> None:
    (store / "token.arrow").write_text("token")
    store.chmod(0)  # what others get of a directory that is the driver's own
    user = os.geteuid()
    try:
        if user == 0:  # root may do everything
            os.seteuid(65534)
        visits = list(visit_place(str(store), "token", "the driver", [0]))
    finally:
        os.seteuid(user)
        store.chmod(0o700)
    problem = "no permission to use the driver's files: executors run as another user"
    assert visits == [Visit(HOST, problem=problem)]


def test_a_directory_that_the_driver_lacks(context: SparkContext) -> None:
    with pytest.raises(StoreFullError, match="/nowhere/at/all"):
        check_reach(context, "/nowhere/at/all")


# ---- URLs


def keyless(server: FakeS3) -> str:
    return f"s3://bucket/store?endpoint_override={server.address}&scheme=http&region=us-east-1"


def test_a_bucket_is_reached_and_left_empty(context: SparkContext) -> None:
    with fake_s3() as server:
        check_reach(context, server.url("store"))
        assert sum("/store/sparkfusion-" in request and "PUT" in request for request in server.requests) >= 4
        assert server.names() == []


@pytest.mark.long
def test_executors_without_the_drivers_keys(
    context: SparkContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "python"
    keys = "AWS_ACCESS_KEY_ID=AKIAOTHER AWS_SECRET_ACCESS_KEY=other"
    other.write_text(f'#!/bin/sh\n{keys} exec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr(context, "pythonExec", str(other))
    with fake_s3() as server:
        with pytest.raises(UserError) as caught:
            check_reach(context, keyless(server))
        assert server.names() == []
    assert caught.value.message.startswith(f"the executor on {HOST} does not reach the store s3://bucket/store?")
    assert "ACCESS_DENIED" in caught.value.message
    assert "the keys for it" in str(caught.value)


def test_a_driver_without_keys_fails_before_any_job(context: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "parallelize", None)
    with fake_s3() as server, pytest.raises(UserError, match=r"cannot write s3://bucket/store/sparkfusion-\w+/owner"):
        check_reach(context, server.url("store", "AKIAOTHER"))
