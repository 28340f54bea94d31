"""Figures of docs/adr/0021: what a library does better than code of our own, and what not.

    pip install obstore sqlglot
    python -m benchmarks.libraries            # all four; or some of: pages, tokens, listings, resume

Sides take turns, the best time of each counts. Servers run in processes of their own, on 127.0.0.1.
"""

from __future__ import annotations

import importlib
import multiprocessing
import ssl
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme
from pyarrow import fs

import sparkfusion
from benchmarks.transport import TOKEN, worker, write_tables
from sparkfusion.feed.ready import http_client
from sparkfusion.file_systems import open_url
from sparkfusion.runner.passed import AttemptRows
from sparkfusion.session.sql_text import mask
from tests.suites.fake_s3 import KEY, SECRET, FakeS3, fake_s3

ROUNDS = 5
PAGES = 100
OBJECTS = 20_000
BODY = b"[" + b",".join(b'{"id": %d, "name": "somebody"}' % i for i in range(100)) + b"]"
QUERY = "select a, sum(b) as b from t join u on t.k = u.k where t.x > 5 and u.y like 'abc%' group by a order by b"
VALUES = "insert into t values " + ", ".join(f"({i}, 'some text {i}')" for i in range(20_000))


def compare(title: str, sides: Mapping[str, Callable[[], object]], times: int = 1) -> None:
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for name, run in sides.items():
            began, busy = time.perf_counter(), time.process_time()
            for _ in range(times):
                run()
            taken = time.perf_counter() - began, time.process_time() - busy
            best[name] = min(taken, best.get(name, taken))
    print(title)
    for name, (wall, cpu) in best.items():
        print(f"  {name:<38}{wall * 1e3:>10.2f} ms{cpu * 1e3:>10.2f} ms of CPU")


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        return


def _serve_pages(told: Any, certificate: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    told.put(server.server_port)
    server.serve_forever()


def _started(target: Callable[..., None], *arguments: object) -> tuple[Any, Any]:
    told: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=target, args=(told, *arguments), daemon=True)
    process.start()
    return process, told.get()


def pages() -> None:
    """A connection for each page, as urllib makes it, against connections that are kept."""
    with tempfile.TemporaryDirectory() as directory:
        authority, certificate = trustme.CA(), f"{directory}/server.pem"
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        http_client.ssl.create_default_context = lambda *_, **__: trust  # type: ignore[attr-defined]
        for scheme in ("http", "https"):
            process, port = _started(_serve_pages, certificate if scheme == "https" else "")
            url = f"{scheme}://127.0.0.1:{port}/items?page=1"
            sides: dict[str, Callable[[], object]] = {
                "a connection for each": partial(_fetch_alone, url, trust if scheme == "https" else None),
                "kept connections": partial(http_client.HttpClient().fetch, url, {}, lambda _: False),
            }
            compare(f"{PAGES} pages by {scheme}", sides, PAGES)
            process.terminate()


def _fetch_alone(url: str, trust: ssl.SSLContext | None) -> None:
    with urllib.request.urlopen(url, context=trust) as answer:
        answer.read()


def tokens() -> None:
    """Finding what is SQL in SQL text: our scanner against sqlglot's tokenizer."""
    tokenize = importlib.import_module("sqlglot").tokenize
    for sql, times in ((QUERY, 100), (VALUES, 1)):
        sides = {"mask": partial(mask, sql), "sqlglot": partial(tokenize, sql, read="postgres")}
        compare(f"SQL of {len(sql):,} characters, {times} times", sides, times)


def _serve_objects(told: Any) -> None:
    with fake_s3() as server:
        server.objects |= {f"bucket/data/day={i // 1000:03}/{i:06}.parquet": b"rows" for i in range(OBJECTS)}
        told.put(server)
        time.sleep(3600)


def listings() -> None:
    """Names in an object store: Arrow's file system against obstore."""
    stores = importlib.import_module("obstore.store")
    list_directory = importlib.import_module("obstore").list_with_delimiter
    process, found = _started(_serve_objects)
    server: FakeS3 = found
    system, _ = open_url(server.url(""))
    login = {"access_key_id": KEY, "secret_access_key": SECRET, "region": "us-east-1"}
    store = stores.S3Store("bucket", **login, endpoint=f"http://{server.address}", client_options={"allow_http": True})
    everything = fs.FileSelector("bucket/data", recursive=True)
    compare(
        f"listings of {OBJECTS:,} objects",
        {
            "one directory of 1,000, Arrow": lambda: system.get_file_info(fs.FileSelector("bucket/data/day=003")),
            "one directory of 1,000, obstore": lambda: list_directory(store, "data/day=003"),
            "all, Arrow": lambda: system.get_file_info(everything),
            "all, obstore": lambda: [len(some) for some in store.list("data")],
            "until the first, obstore": lambda: next(iter(store.list("data"))),
        },
    )
    process.terminate()


def resume() -> None:
    """A result of 120 MB over Flight, with and without the checksum that lets a lost task continue."""
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        write_tables(Path(made), 120_000_000)
        addresses = [stack.enter_context(worker()).partition("://")[2] for _ in range(2)]
        session = stack.enter_context(sparkfusion.connect(f"flight://{','.join(addresses)}?token={TOKEN}"))
        session.register_arrow("big", f"{made}/big")
        read = AttemptRows.read

        def run(reads: Any) -> None:
            AttemptRows.read = reads  # type: ignore[method-assign]
            with session.sql("select * from big where k >= 0").stream() as query:
                assert sum(batch.num_rows for batch in query)

        compare("120 MB over Flight", {"without": lambda: run(lambda rows, data: None), "with": lambda: run(read)})


if __name__ == "__main__":
    every = {"pages": pages, "tokens": tokens, "listings": listings, "resume": resume}
    for chosen in sys.argv[1:] or every:
        every[chosen]()
