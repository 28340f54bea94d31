"""Frames in a remote store: over a directory that stands for one, and over the real S3 protocol."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError, StoreFullError, UserError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.file_systems import open_url
from sparkfusion.ids import SourceFile
from sparkfusion.runner.spark import remote_home
from sparkfusion.runner.spark.remote_home import LEFTOVER_AGE, RemoteHome
from sparkfusion.runner.spark.transfers import download, exists, read_bytes, upload, write_bytes
from sparkfusion.urls import bare, is_url, join, plain_path, show_url
from tests.suites.fake_s3 import KEY, SECRET, FakeS3, fake_s3

QUERY = "0123456789ab"
DEAD, ALIVE = "00000000dead", "0000000a11fe"


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


@pytest.fixture(params=["file", "s3"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store."""
    if request.param == "file":
        return f"file://{tmp_path}/store"
    server: FakeS3 = request.getfixturevalue("s3")
    return server.url("store")


def frame_files(directory: Path, count: int = 3, size: int = 100) -> list[FrameFile]:
    """Files of an attempt, each with other bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(count):
        path = directory / f"{number}-000000.arrow"
        path.write_bytes(bytes([number]) * (size + number))
        made.append(FrameFile(str(path), number, number, size + number))
    return made


def sources(files: tuple[FrameFile, ...]) -> list[SourceFile]:
    return [SourceFile(file.path, file.bytes) for file in files]


def listed(url: str) -> list[str]:
    """Names of all files below a URL."""
    from pyarrow import fs

    system, path = open_url(url)
    found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return sorted(info.path.removeprefix(path).lstrip("/") for info in found if info.type == fs.FileType.File)


# ---- there and back


def test_files_come_back_as_they_were(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    local = frame_files(tmp_path / "task")
    sent = upload(local, home.url, "1-0-7")
    assert [(file.partition, file.rows, file.bytes) for file in sent] == [(0, 0, 100), (1, 1, 101), (2, 2, 102)]
    assert listed(base) == [
        *(f"sparkfusion-{QUERY}/1-0-7/{number}-000000.arrow" for number in range(3)),
        f"sparkfusion-{QUERY}/owner",
    ]
    wanted = [*sources(sent)[::-1], sources(sent)[0]]  # in another order, one of them twice
    got = download(wanted, home.url, tmp_path / "consumer")
    assert [Path(file.path).read_bytes() for file in got] == [
        bytes([number]) * (100 + number) for number in (2, 1, 0, 0)
    ]
    assert [file.size for file in got] == [102, 101, 100, 100]
    assert all(Path(file.path).is_relative_to(tmp_path / "consumer") for file in got)
    home.close()
    home.close()
    assert listed(base) == []


def test_a_file_of_many_parts(s3: FakeS3, tmp_path: Path) -> None:
    home = RemoteHome(s3.url("store"), QUERY)
    (file,) = frame_files(tmp_path / "task", 1, size=40_000_000)
    (sent,) = upload([file], home.url, "1-0-0")
    assert sum(request.startswith("PUT") and "arrow" in request for request in s3.requests) > 1
    (got,) = download(sources((sent,)), home.url, tmp_path / "consumer")
    assert Path(got.path).read_bytes() == Path(file.path).read_bytes()
    home.close()


def test_a_small_file_takes_one_request(s3: FakeS3, tmp_path: Path) -> None:
    home = RemoteHome(s3.url("store"), QUERY)
    files = frame_files(tmp_path / "task", 20)
    s3.requests.clear()
    upload(files, home.url, "1-0-0")
    assert len(s3.requests) == 20 + 1  # and is the query still there?
    home.close()


def test_more_files_than_a_page_of_a_listing(s3: FakeS3, tmp_path: Path) -> None:
    home = RemoteHome(s3.url("store"), QUERY)
    prefix = f"bucket/store/sparkfusion-{QUERY}"
    s3.objects.update({f"{prefix}/1-{number}-0/0-000000.arrow": b"" for number in range(2500)})
    home.close()
    assert s3.names() == []


def test_nothing_to_do() -> None:
    assert upload([], "s3://bucket/x", "1-0-0") == ()


def test_files_that_are_not_what_they_were(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    first, second, _ = sources(upload(frame_files(tmp_path / "task"), home.url, "1-0-0"))
    with pytest.raises(ExternalError, match=r"0-000000.arrow: it has 100 bytes instead of 99$") as caught:
        download([SourceFile(first.path, 99)], home.url, tmp_path / "a")
    assert caught.value.retryable
    home.close()
    with pytest.raises(ExternalError, match=f"cannot download {re.escape(second.path)}: ") as caught:
        download([second], home.url, tmp_path / "b")
    assert caught.value.retryable


def test_after_an_error_no_further_file_is_begun(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    files = frame_files(tmp_path / "task", 200)
    Path(files[0].path).unlink()
    with pytest.raises(SparkfusionError, match=r"0-000000\.arrow"):
        upload(files, home.url, "1-0-0")
    assert len(listed(base)) < 150
    home.close()
    assert listed(base) == []


def test_a_full_disk_is_named(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    sent = upload(frame_files(tmp_path / "task", 1), home.url, "1-0-0")
    (tmp_path / "full" / "1-0-0").mkdir(parents=True)
    (tmp_path / "full" / "1-0-0" / "0-000000.arrow").symlink_to("/dev/full")
    with pytest.raises(StoreFullError, match="No space left"):
        download(sources(sent), home.url, tmp_path / "full")
    home.close()


# ---- the life of a home


def test_a_task_that_was_given_up_leaves_nothing(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    home.close()
    with pytest.raises(QueryCancelledError):
        upload(frame_files(tmp_path / "task"), home.url, "1-0-0")
    assert listed(base) == []


def test_tasks_that_upload_while_the_query_ends(base: str, tmp_path: Path) -> None:
    home = RemoteHome(base, QUERY)
    files = frame_files(tmp_path / "task")
    begun, ends = threading.Event(), []

    def work() -> None:
        try:
            for attempt in range(10_000):
                upload(files, home.url, f"1-0-{attempt}")
                begun.set()
        except SparkfusionError as error:
            ends.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert begun.wait(60)
    home.close()
    for worker in workers:
        worker.join()
    assert len(ends) == 3
    assert listed(base) == []


def test_who_made_it(base: str) -> None:
    home = RemoteHome(base, QUERY)
    owner = json.loads(read_bytes(home.url, "owner"))
    assert owner["process"] == os.getpid()
    assert owner["host"]
    home.close()
    assert not exists(home.url, "owner")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that no home was made in yet by this process."""
    monkeypatch.setattr(remote_home, "_swept", set())
    return tmp_path / "store"


def leave(store: Path, query: str, age: timedelta, *names: str) -> Path:
    home = store / f"sparkfusion-{query}"
    then = time.time() - age.total_seconds()
    for name in names:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (then, then))
    return home


OLD, YOUNG = LEFTOVER_AGE + timedelta(minutes=1), LEFTOVER_AGE - timedelta(minutes=1)


def test_what_a_dead_driver_left_goes_after_a_week(store: Path) -> None:
    dead = leave(store, DEAD, OLD, "owner", "1-0-0/0-000000.arrow")
    late = leave(store, "000000001a7e", OLD, "1-0-0/0-000000.arrow")
    RemoteHome(f"file://{store}", QUERY).close()
    assert not dead.exists()
    assert not late.exists()


@pytest.mark.parametrize(
    ("query", "age", "names"),
    [
        pytest.param(ALIVE, YOUNG, ("owner", "1-0-0/0-000000.arrow"), id="younger"),
        pytest.param("data", OLD, ("owner", "1-0-0/0-000000.arrow"), id="another name"),
        pytest.param(ALIVE, OLD, ("owner", "1-0-0/0-000000.arrow", "1-0-0/report.csv"), id="something else inside"),
    ],
)
def test_what_is_not_surely_a_leftover_stays(store: Path, query: str, age: timedelta, names: tuple[str, ...]) -> None:
    home = leave(store, query, age, *names)
    RemoteHome(f"file://{store}", QUERY).close()
    assert len([path for path in home.rglob("*") if path.is_file()]) == len(names)


def test_an_old_home_that_is_still_written_to_stays(store: Path) -> None:
    home = leave(store, ALIVE, OLD, "owner", "1-0-0/0-000000.arrow")
    leave(store, ALIVE, timedelta(hours=1), "2-0-0/0-000000.arrow")
    RemoteHome(f"file://{store}", QUERY).close()
    assert len(list(home.rglob("*.arrow"))) == 2


def test_a_home_that_cannot_be_removed_does_not_fail_the_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with fake_s3() as server:
        home = RemoteHome(server.url("store"), QUERY)
    home.close()
    assert "intermediate data could not be removed: cannot remove s3://bucket/store/sparkfusion-" in caplog.text
    assert SECRET not in caplog.text


# ---- the end of the process

SCRIPT = """
import sys
from pathlib import Path
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.runner.spark.remote_home import RemoteHome
from sparkfusion.runner.spark.transfers import upload
home = RemoteHome(sys.argv[1], "0123456789ab")
upload([FrameFile(sys.argv[2], 0, 1, 100)], home.url, "1-0-0")
print("used", flush=True)
"""


def test_a_process_that_ends_takes_its_homes_along(s3: FakeS3, tmp_path: Path) -> None:
    """And Arrow's S3 client neither hangs nor crashes it: it is ended after our last use."""
    (file,) = frame_files(tmp_path / "task", 1)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", SCRIPT, s3.url("store"), file.path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "used\n", "")
    assert any("1-0-0/0-000000.arrow" in request for request in s3.requests)
    assert s3.names() == []
    assert time.monotonic() - begun < 20


# ---- what errors say, and what they never say


def refused(action: Callable[[], object], kind: type[SparkfusionError]) -> str:
    """The whole text of the error, as a user and a log see it."""
    import traceback

    with pytest.raises(kind) as caught:
        action()
    text = "".join(traceback.format_exception(caught.value, limit=0)) + str(pickle.loads(pickle.dumps(caught.value)))
    for secret in (SECRET, SECRET.replace("/", "%2F").replace("+", "%2B").replace("=", "%3D"), KEY, "AKIAOTHER"):
        assert secret not in text
    return str(caught.value)


@pytest.mark.parametrize(("key", "secret"), [("AKIAOTHER", SECRET), (KEY, "another")])
def test_wrong_keys(s3: FakeS3, tmp_path: Path, key: str, secret: str) -> None:
    url = s3.url("store", key, secret)
    assert "cannot write s3://bucket/store/sparkfusion-" in refused(lambda: RemoteHome(url, QUERY), UserError)
    text = refused(lambda: upload(frame_files(tmp_path / "task"), url, "1-0-0"), UserError)
    assert "cannot upload s3://bucket/store/1-0-0/" in text
    assert "keys and rights" in text
    file = SourceFile("s3://bucket/store/1-0-0/0.arrow", 1)
    assert f"cannot download {file.path}" in refused(lambda: download([file], url, tmp_path), UserError)


def test_keys_before_the_at(s3: FakeS3) -> None:
    where = f"endpoint_override={s3.address}&scheme=http&region=us-east-1"
    home = RemoteHome(f"s3://{KEY}:{SECRET}@bucket/store?{where}", QUERY)
    assert s3.names() == [f"bucket/store/sparkfusion-{QUERY}/owner"]
    assert SECRET not in repr(home)
    home.close()
    assert s3.names() == []
    refused(lambda: RemoteHome(f"s3://AKIAOTHER:{SECRET}@bucket/store?{where}", QUERY), UserError)


def test_a_bucket_that_does_not_exist(s3: FakeS3) -> None:
    url = s3.url("store").replace("//bucket/", "//bucked/")
    assert "NO_SUCH_BUCKET" in refused(lambda: RemoteHome(url, QUERY), UserError)


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with fake_s3() as server:
        url = server.url("store")
    text = refused(lambda: upload(frame_files(tmp_path / "task", 1), url, "1-0-0"), ExternalError)
    assert "cannot upload s3://bucket/store/1-0-0/" in text
    assert server.address in text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"s4://bucket/x?secret_key={SECRET}", "cannot open s4://bucket/x?***: Unrecognized filesystem type"),
        (f"s3://bucket/x?region=a&access_key={KEY}&secret_key={SECRET}&colour=blue", "colour"),
        (f"s3://{KEY}:{SECRET}@bucket/x?region=a&colour=blue", "'colour'"),
        (f"s3://bucket/x?region=a&access_key={KEY}", "secret_key"),
    ],
)
def test_urls_that_make_no_sense(url: str, words: str) -> None:
    assert words in refused(lambda: open_url(url), UserError)


def test_hdfs_without_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    text = refused(lambda: open_url("hdfs://namenode:8020/frames"), UserError)
    assert "HADOOP_HOME" in text
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/x", "s3://bucket/x"),
        ("s3://k:s/e+c@bucket/x/y", "s3://***@bucket/x/y"),
        ("s3://k:s%2Fe@bucket/x?region=r", "s3://***@bucket/x?region=r"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://b/x?secret_key=a&b#c&endpoint_override=h:1", "s3://b/x?endpoint_override=h:1&***"),
        ("hdfs://name:8020/a@b", "hdfs://name:8020/a@b"),
        ("abfs://container@account/x", "abfs://container@account/x"),
        ("abfs://container:pass@account/x", "abfs://***@account/x"),
        ("/plain/path", "/plain/path"),
    ],
)
def test_how_urls_are_shown(url: str, expected: str) -> None:
    assert show_url(url) == expected
    assert "pass" not in bare(url)


def test_what_is_a_url() -> None:
    assert [is_url(text) for text in ("s3://b", "gs://b/x", "HDFS://n/x")] == [True] * 3
    assert [is_url(text) for text in ("", "/a", "a/b", "file:///a", "FILE:///a", "c:/a", "a//b")] == [False] * 7
    assert plain_path("FILE:///a/b") == "/a/b"
    assert plain_path("/a%20b") == "/a%20b"


def test_names_with_odd_characters(base: str) -> None:
    place = join(base, "with space", "per%cent")
    write_bytes(place, "name", b"data")
    assert read_bytes(place, "name") == b"data"
    assert listed(base) == ["with space/per%cent/name"]


def test_one_connection_for_all_places_of_a_store(s3: FakeS3) -> None:
    assert open_url(s3.url("a"))[0] is open_url(s3.url("b/c"))[0]
