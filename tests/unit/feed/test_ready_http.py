"""Pages of an HTTP API: how they follow each other, who fetches them, what is tried again, and what no error shows."""

from __future__ import annotations

import json
import os
import pickle
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
import pytest

import sparkfusion
from sparkfusion import ExternalError, FeedContext, ReaderContext, Session, SparkfusionError, UserError, WorkUnit
from sparkfusion.errors import UnavailableError
from sparkfusion.feed.provider import ScanRequest
from sparkfusion.feed.ready import http_client
from sparkfusion.feed.ready.http_client import HttpClient
from sparkfusion.feed.ready.json_rows import batch_of
from sparkfusion.feeds import Cursor, HttpPages, LinkHeader, NextLink, Offset, PageNumber

SCHEMA = pa.schema([("v", pa.int64()), ("name", pa.string())])
Reply = tuple[int, Any, Mapping[str, str]]


class Api:
    """A server whose answers a test writes: `answer(path, parameters, headers)`. It remembers what was asked.

    `connections` counts those that were made, `closed` tells that one has ended.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str, dict[str, str], Mapping[str, str]], Reply] = lambda *_: (404, {}, {})
        self.asked: list[tuple[dict[str, str], Mapping[str, str], str]] = []
        self.url = ""
        self.connections = 0
        self.closed = threading.Event()


@contextmanager
def serving(version: str = "HTTP/1.0", *, hangs_up: bool = False) -> Iterator[Api]:
    """By default each connection serves one request; by HTTP/1.1 it stays open until an answer says `close`.

    Args:
        hangs_up: end the connection after each answer without a word, as servers do when a client is quiet for long.
    """
    api = Api()

    class Server(ThreadingHTTPServer):
        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            api.closed.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = version

        def setup(self) -> None:
            super().setup()
            api.connections += 1

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            parameters = dict(parse_qsl(parts.query))
            api.asked.append((parameters, dict(self.headers), threading.current_thread().name))
            status, body, headers = api.answer(parts.path, parameters, dict(self.headers))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = self.close_connection or hangs_up

        def log_message(self, format: str, *args: object) -> None:
            return

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}/items"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as made:
        yield made


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as opened:
        yield opened


def rows(page: int) -> list[dict[str, Any]]:
    return [{"v": page * 10 + at, "name": f"n{at}", "more": [1]} for at in range(3)]


EXPECTED = [page * 10 + at for page in range(4) for at in range(3)]


def values(session: Session, query: str = "select v from t order by v") -> list[Any]:
    return [next(iter(row.values())) for row in session.sql(query).to_pylist()]


def context() -> FeedContext:
    return FeedContext("q", "t", ScanRequest(()), tasks=1)


def numbered(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
    page = int(parameters["page"]) - 1
    return 200, {"data": {"items": rows(page) if page < 4 else []}, "pages": 4}, {}


@pytest.mark.parametrize("pages", [None, 4, "pages"])
def test_numbered_pages(session: Session, api: Api, pages: Any) -> None:
    api.answer = numbered
    session.register_feed(
        "t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=pages), rows="data.items", params={"key": "k"})
    )
    assert values(session) == EXPECTED
    assert sorted(int(parameters["page"]) for parameters, _, _ in api.asked) == [
        1,
        2,
        3,
        4,
        *([5] if not pages else []),
    ]
    assert {parameters["key"] for parameters, _, _ in api.asked} == {"k"}
    assert values(session, "select count(*) as c from t where name = 'n1'") == [4]
    assert values(session, "select count(*) as c from t") == [12]


@pytest.mark.parametrize(
    ("pages", "payloads"), [(3, [1, 2, 3]), ("pages", [bytes, 2, 3, 4]), (None, [bytes, bytes, bytes, bytes])]
)
def test_workers_fetch_numbered_pages_whose_count_is_known(api: Api, pages: Any, payloads: list[Any]) -> None:
    api.answer = numbered
    units = HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=pages), rows="data.items").feed(None, context())
    found = [unit.payload for unit in units]
    assert [bytes if isinstance(payload, bytes) else payload for payload in found] == payloads


@pytest.mark.parametrize("total", [None, 12, "total"])
def test_offsets(session: Session, api: Api, total: Any) -> None:
    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        first = int(parameters["offset"])
        every = [{"v": value} for value in EXPECTED]
        return 200, {"items": every[first : first + int(parameters["limit"])], "total": 12}, {}

    api.answer = answer
    session.register_feed(
        "t", HttpPages(api.url, schema=SCHEMA, next=Offset(5, total=total), rows="items", params={"limit": 5})
    )
    assert values(session) == EXPECTED
    assert sorted(int(p["offset"]) for p, _, _ in api.asked) == [0, 5, 10, *([15] if total is None else [])]


@pytest.mark.parametrize("where", ["header", "body", "cursor"])
def test_pages_that_tell_the_next(session: Session, api: Api, where: str) -> None:
    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        page = int(parameters.get("at", "0"))
        link = f"?at={page + 1}&key=k" if page < 3 else None
        body = {"rows": rows(page), "paging": {"next": link, "cursor": str(page + 1) if link else ""}}
        prev = '<http://127.0.0.1/?a,b>; rel="prev"'
        return 200, body, {"Link": f'{prev}, <{link}>; title="x"; rel="next"'} if link else {"Link": prev}

    api.answer = answer
    nexts: dict[str, Any] = {
        "header": LinkHeader(),
        "body": NextLink("paging.next"),
        "cursor": Cursor("paging.cursor", "at"),
    }
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=nexts[where], rows="rows", params={"key": "k"}))
    assert values(session) == EXPECTED
    assert [parameters.get("at") for parameters, _, _ in api.asked] == [None, "1", "2", "3"]
    assert {parameters["key"] for parameters, _, _ in api.asked} == {"k"}


def test_pages_in_a_circle_and_at_other_hosts_are_refused(session: Session, api: Api) -> None:
    api.answer = lambda path, parameters, headers: (200, {"rows": rows(0), "next": "/items?token=hush"}, {})
    provider = HttpPages(api.url, schema=SCHEMA, next=NextLink("next"), rows="rows")
    with pytest.raises(UserError, match="lead in a circle") as caught:
        list(provider.feed(None, context()))
    assert "hush" not in str(caught.value)
    api.answer = lambda path, parameters, headers: (200, {"rows": rows(0), "next": "http://evil.example/x"}, {})
    with pytest.raises(UserError, match=r"another host: evil\.example:80"):
        list(provider.feed(None, context()))
    api.answer = lambda path, parameters, headers: (200, {"rows": rows(0), "next": "file:///etc/passwd"}, {})
    with pytest.raises(UserError, match="another host"):
        list(provider.feed(None, context()))


def test_headers_of_provider_and_registration_are_sent_by_coordinator_and_workers(session: Session, api: Api) -> None:
    api.answer = numbered
    provider = HttpPages(
        api.url, schema=SCHEMA, next=PageNumber(pages="pages"), rows="data.items", headers={"Authorization": "Bearer a"}
    )
    session.register_feed("t", provider, headers={"X-Team": "blue"})
    assert values(session) == EXPECTED
    assert [(h["Authorization"], h["X-Team"]) for _, h, _ in api.asked] == [("Bearer a", "blue")] * 4


def test_headers_do_not_follow_a_redirect_to_another_host(api: Api) -> None:
    with serving() as other:
        other.answer = lambda path, parameters, headers: (200, [], {})
        api.answer = lambda path, parameters, headers: (302, {}, {"Location": other.url})
        HttpClient(headers={"Authorization": "Bearer a"}).fetch(api.url, {"X-Key": "b"}, lambda seconds: False)
        assert "Authorization" in api.asked[0][1]
        assert not {"Authorization", "X-Key"} & {name.title() for name in other.asked[0][1]}


def never(seconds: float) -> bool:
    return bool(pytest.fail("it must not wait"))


@pytest.mark.parametrize("pages", [None, 5])
def test_pages_come_over_one_connection(session: Session, pages: int | None) -> None:
    """Whether the coordinator fetches them, or tasks of this process."""

    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        status, body, _ = numbered(path, parameters, headers)
        return status, body, {"Connection": "close"} if parameters["page"] == "5" else {}

    with serving("HTTP/1.1") as api:
        api.answer = answer
        provider = HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=pages), rows="data.items")
        session.register_feed("t", provider, tasks=1)
        assert values(session) == EXPECTED
        assert len(api.asked) == 5
        assert api.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    with serving("HTTP/1.1", hangs_up=True) as api:
        api.answer = lambda path, parameters, headers: (200, [], {})
        for _ in range(3):
            HttpClient(retries=0).fetch(api.url, {}, never)
            assert api.closed.wait(30)
            api.closed.clear()
        assert api.connections == 3


def test_a_forked_process_does_not_use_connections_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = http_client._connections("http://a.example/")
    assert http_client._connections("http://b.example/") is mine
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert http_client._connections("http://a.example/") is not mine


@pytest.mark.parametrize("location", ["/items", "file:///etc/passwd", "http://[", None])
def test_redirects_that_lead_nowhere_are_errors(api: Api, location: str | None) -> None:
    api.answer = lambda path, parameters, headers: (302, {}, {"Location": location} if location else {})
    with pytest.raises(UserError, match=r"/items\?key=\*\*\*( answered 302|: .* is not valid)") as caught:
        HttpClient().fetch(f"{api.url}?key=very-secret", {}, never)
    assert "very-secret" not in str(caught.value)
    assert len(api.asked) == (11 if location == "/items" else 1)


def test_a_header_that_http_does_not_allow_is_not_shown(api: Api) -> None:
    with pytest.raises(UserError, match="a header is not valid") as caught:
        HttpClient(headers={"Authorization": "very-secret\nX: y"}).fetch(api.url, {}, never)
    assert "very-secret" not in str(caught.value)


def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/items?key=very-secret"
        with pytest.raises(UnavailableError, match=r"cannot reach .*key=\*\*\*: .*timed out") as caught:
            HttpClient(timeout=0.05, retries=0).fetch(url, {}, never)
    assert "very-secret" not in str(caught.value)


def test_the_proxy_of_the_environment_is_used(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        told = {name.title(): value for name, value in headers.items()}
        asked.append(f"{told['Host']}{path} {told.get('Proxy-Authorization')}")
        return 200, [], {}

    api.answer = answer
    monkeypatch.setenv("http_proxy", api.url.replace("//", "//me:hush@"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    HttpClient().fetch("http://far.example/x", {}, never)
    HttpClient().fetch(api.url, {}, never)
    assert asked == ["far.example/x Basic bWU6aHVzaA==", f"{urlsplit(api.url).netloc}/items None"]


@pytest.mark.parametrize("worker", [False, True])
def test_busy_servers_are_asked_again(session: Session, api: Api, worker: bool) -> None:
    refused = [429, 503, 500]

    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        return (refused.pop(), {}, {"Retry-After": "0"}) if refused else numbered(path, parameters, headers)

    api.answer = answer
    session.register_feed(
        "t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=4 if worker else None), rows="data.items")
    )
    assert values(session) == EXPECTED
    assert refused == []


def test_pauses_grow_or_are_what_the_server_asks_for(api: Api) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    replies = iter([{"Retry-After": "7"}, {"Retry-After": later}, {}, {}, {"Retry-After": "soon"}])
    api.answer = lambda path, parameters, headers: (503, {}, next(replies))
    with pytest.raises(ExternalError, match="answered 503"):
        HttpClient(retries=4).fetch(api.url, {}, wait)
    assert pauses[0] == 7
    assert 90 < pauses[1] <= 100
    assert 1 <= pauses[2] <= 2 <= pauses[3] <= 4
    assert len(pauses) == 4


def test_too_long_a_pause_is_an_error(api: Api) -> None:
    api.answer = lambda path, parameters, headers: (429, {}, {"Retry-After": "3600"})
    with pytest.raises(ExternalError, match="asks to wait 3600 seconds"):
        HttpClient().fetch(api.url, {}, lambda seconds: pytest.fail("it must not wait"))


def test_a_wait_ends_when_nobody_needs_the_pages(api: Api) -> None:
    told = context()

    def answer(path: str, parameters: dict[str, str], headers: Mapping[str, str]) -> Reply:
        told.stop()
        return 503, {}, {"Retry-After": "200"}

    api.answer = answer
    assert list(HttpPages(api.url, schema=SCHEMA).feed(None, told)) == []
    assert len(api.asked) == 1


def test_a_limit_ends_the_fetching(session: Session, api: Api) -> None:
    api.answer = lambda path, parameters, headers: (200, rows(int(parameters["page"])), {})
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=PageNumber()))
    assert len(values(session, "select v from t limit 4")) == 4


@pytest.mark.parametrize("pages", [None, 2])
@pytest.mark.parametrize("status", [401, 404])
def test_refusals_are_not_asked_again_and_show_no_secrets(session: Session, api: Api, status: int, pages: Any) -> None:
    api.answer = lambda path, parameters, headers: (status, {}, {})
    provider = HttpPages(
        api.url,
        schema=SCHEMA,
        next=PageNumber(pages=pages),
        params={"api_key": "very-secret"},
        headers={"Authorization": "Bearer hidden"},
    )
    session.register_feed("t", provider)
    with pytest.raises(UserError, match=rf"/items\?api_key=\*\*\*&page=\*\*\* answered {status}") as caught:
        values(session)
    text = f"{caught.value!s} {caught.value!r} {provider.reader!r}"
    assert "very-secret" not in text
    assert "hidden" not in text
    if pages is None:
        assert len(api.asked) == 1


def test_a_server_that_is_not_there_is_named_soon(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as gone:
        url = gone.url
    waits: list[float] = []
    with pytest.raises(UnavailableError, match=r"cannot reach http://127\.0\.0\.1:\d+/items.*refused") as caught:
        HttpClient().fetch(url, {}, lambda seconds: bool(waits.append(seconds)))  # type: ignore[func-returns-value]
    assert "that the server runs" in str(caught.value)
    assert len(waits) == 2
    assert sum(waits) < 1
    assert [record.getMessage().split("; ")[1] for record in caplog.records] == [
        "asking again in 0.2 s (1 of 2)",
        "asking again in 0.5 s (2 of 2)",
    ]


def test_a_host_that_nobody_knows_is_named_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    waits: list[float] = []
    with pytest.raises(UnavailableError, match=r"cannot reach http://nowhere\.example/items"):
        HttpClient().fetch("http://nowhere.example/items", {}, lambda seconds: bool(waits.append(seconds)))  # type: ignore[func-returns-value]
    assert len(waits) == 2


@pytest.mark.parametrize("pages", [None, 3])
def test_what_was_asked_often_enough_is_not_asked_by_further_attempts(
    session: Session, api: Api, pages: int | None
) -> None:
    """Whether the coordinator asks, or tasks, which are tried again after other errors of the network."""
    api.answer = lambda path, parameters, headers: (503, {}, {"Retry-After": "0"})
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=pages), retries=1))
    with pytest.raises(SparkfusionError, match="answered 503"):
        values(session)
    asked = Counter(parameters["page"] for parameters, _, _ in api.asked)
    assert max(asked.values()) == 2


@pytest.mark.parametrize(
    ("body", "rows", "words"),
    [
        (b"<html>", None, "did not return JSON"),
        ({"items": []}, None, r"is not a list: it has the keys 'items'"),
        ({"items": []}, "data", "has no list at 'data'"),
        ({"data": {"items": []}}, "data.itms", "has no list at 'data.itms'"),
        ([1, 2], None, "must be JSON objects, but one is a int"),
        ([{"v": "x"}], None, "column 'v' is int64"),
        ([{"v": 1.5}], None, "column 'v' is int64, but a value is '1.5'"),
    ],
)
def test_answers_that_make_no_rows(session: Session, api: Api, body: Any, rows: str | None, words: str) -> None:
    api.answer = lambda path, parameters, headers: (200, body, {})
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=1), rows=rows))
    with pytest.raises(SparkfusionError, match=words):
        values(session)


@pytest.mark.parametrize("body", [{"data": None}, {"data": {"items": None}}, {"data": {"items": []}}])
def test_an_answer_may_have_null_instead_of_an_empty_list(session: Session, api: Api, body: Any) -> None:
    api.answer = lambda path, parameters, headers: (200, body, {})
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=1), rows="data.items"))
    assert values(session) == []


def test_only_the_columns_that_a_query_needs_have_to_be_right(session: Session, api: Api) -> None:
    api.answer = lambda path, parameters, headers: (200, [{"v": 1, "name": 5}, {"name": None}], {})
    session.register_feed("t", HttpPages(api.url, schema=SCHEMA, next=PageNumber(pages=1)))
    assert values(session, "select v from t order by v nulls first") == [None, 1]
    with pytest.raises(UserError, match="column 'name' is string"):
        values(session, "select name from t")


@pytest.mark.parametrize("url", ["ftp://a.example/x", "items", "http://"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(UserError, match="is not an http URL"):
        HttpPages(url, schema=SCHEMA)


def test_passwords_belong_into_headers() -> None:
    with pytest.raises(UserError, match="contains a user name") as caught:
        HttpPages("https://me:hush@a.example/x", schema=SCHEMA)
    assert "hush" not in str(caught.value)


def test_json_values_of_every_kind() -> None:
    schema = pa.schema(
        [
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("price", pa.decimal128(9, 2)),
            ("tags", pa.list_(pa.string())),
            ("who", pa.struct([("id", pa.int32()), ("born", pa.date32())])),
            ("x", pa.float64()),
            ("ok", pa.bool_()),
        ]
    )
    first = {
        "at": "2024-01-01T12:00:00Z",
        "day": "2024-01-02",
        "price": 0.1,
        "tags": ["a", None],
        "who": {"id": 1, "born": "2000-01-01", "other": 1},
        "x": 1,
        "ok": True,
    }
    found = batch_of([first, {"who": {}, "tags": [], "price": "2.50"}, {}], schema)
    found.validate(full=True)
    assert found.schema == schema
    assert found.to_pylist() == [
        {
            "at": datetime(2024, 1, 1, 12, tzinfo=UTC),
            "day": datetime(2024, 1, 2).date(),
            "price": Decimal("0.10"),
            "tags": ["a", None],
            "who": {"id": 1, "born": datetime(2000, 1, 1).date()},
            "x": 1.0,
            "ok": True,
        },
        {"at": None, "day": None, "price": Decimal("2.50"), "tags": [], "who": {"id": None, "born": None}, "x": None}
        | {"ok": None},
        dict.fromkeys(schema.names),
    ]


@pytest.mark.parametrize(
    ("type", "value", "name"),
    [
        (pa.int64(), True, "c"),
        (pa.int8(), 300, "c"),
        (pa.string(), 5, "c"),
        (pa.bool_(), 1, "c"),
        (pa.date32(), "yesterday", "c"),
        (pa.decimal128(4, 1), 0.25, "c"),
        (pa.decimal128(4, 1), "x", "c"),
        (pa.list_(pa.int64()), "abc", "c"),
        (pa.list_(pa.int64()), ["abc"], r"c\[\]"),
        (pa.struct([("a", pa.int64())]), [1], "c"),
        (pa.struct([("a", pa.struct([("b", pa.int64())]))]), {"a": {"b": "x"}}, r"c\.a\.b"),
    ],
)
def test_values_of_another_type_name_their_column(type: pa.DataType, value: Any, name: str) -> None:
    with pytest.raises(UserError, match=f"column '{name}' is "):
        batch_of([{"c": value}], pa.schema([("c", type)]))


def test_a_page_travels_without_its_url(api: Api) -> None:
    provider = HttpPages(api.url, schema=SCHEMA, params={"key": "hush"}, next=PageNumber(pages=1))
    assert list(provider.feed(None, context())) == [WorkUnit(1)]
    api.answer = lambda path, parameters, headers: (200, [{"v": 1}], {})
    travelled = pickle.loads(pickle.dumps(provider.reader))
    made = travelled(WorkUnit(1), ReaderContext("t", SCHEMA, ("v",)))
    assert made.to_pylist() == [{"v": 1}]
