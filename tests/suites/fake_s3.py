"""A small S3 server for tests: in this process, on 127.0.0.1, as much of the protocol as Arrow and DataFusion speak.

Objects, ranges, listings, uploads in parts, deletes of many; signatures are checked, so a wrong secret is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion.object_store import AmazonS3

KEY, SECRET = "AKIAFAKEFAKEFAKE", "a/secret+that/nobody=sees"


@dataclass
class FakeS3:
    """The server's state. `objects` is bucket/key → bytes; `requests` is what was asked for, without parameters."""

    address: str = ""
    buckets: set[str] = field(default_factory=lambda: {"bucket"})
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def url(self, path: str, key: str = KEY, secret: str = SECRET) -> str:
        """A URL of Arrow's, with keys in it."""
        where = f"endpoint_override={self.address}&scheme=http&region=us-east-1"
        return f"s3://bucket/{path}?{where}&access_key={key}&secret_key={quote(secret, safe='')}"

    def put_table(self, path: str, table: pa.Table) -> None:
        """Put a Parquet file into the bucket."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        self.objects[f"bucket/{path}"] = sink.getvalue().to_pybytes()

    def store_maker(self) -> Callable[[], AmazonS3]:
        """A function that makes DataFusion's store of the bucket, here or in another process."""
        endpoint = f"http://{self.address}"
        return lambda: AmazonS3("bucket", "us-east-1", KEY, SECRET, endpoint=endpoint, allow_http=True)

    def names(self) -> list[str]:
        """All keys, without the empty objects by which Arrow marks directories."""
        return sorted(name for name in self.objects if not name.endswith("/"))


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    """A server until the `with` ends."""
    state = FakeS3()
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False  # so that closing waits for them
    state.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>\S+?), ?SignedHeaders=(?P<headers>\S+?), ?"
    r"Signature=(?P<signature>\w+)"
)


class _RefusedError(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    state: FakeS3
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        return

    def _handle(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        path, query = unquote(parts.path).lstrip("/"), dict(parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, key = path.partition("/")
        self.state.requests.append(f"{self.command} {path}")
        try:
            self._check_access(bucket)
            answer = getattr(self, f"_{self.command.lower()}_{'object' if key else 'bucket'}")
            answer(path.rstrip("/") if not key else path, query, body)
        except _RefusedError as refusal:
            text = f"<Error><Code>{refusal.code}</Code><Message>refused</Message></Error>"
            self._answer(refusal.status, text.encode())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _check_access(self, bucket: str) -> None:
        signed = _AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
        if signed is None or signed["key"] != KEY:
            raise _RefusedError(403, "InvalidAccessKeyId")
        if not hmac.compare_digest(signed["signature"], self._signature(signed["scope"], signed["headers"])):
            raise _RefusedError(403, "SignatureDoesNotMatch")
        if bucket not in self.state.buckets:
            raise _RefusedError(404, "NoSuchBucket")

    def _signature(self, scope: str, headers: str) -> str:
        """What the client must have come to: version 4 of AWS's signatures."""
        parts = urlsplit(self.path)
        query = sorted((quote(k, safe="~"), quote(v, safe="~")) for k, v in parse_qsl(parts.query, True))
        lines = [
            *(self.command, parts.path, "&".join(f"{name}={value}" for name, value in query)),
            *(f"{name}:{' '.join((self.headers[name] or '').split())}" for name in headers.split(";")),
            *("", headers, self.headers["x-amz-content-sha256"]),
        ]
        request = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = f"AWS4{SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, request])
        return hmac.digest(key, text.encode(), "sha256").hex()

    def _head_bucket(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        self._answer(200)

    def _get_bucket(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        """A listing, in pages of 1,000 at most."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        limit, after = int(query.get("max-keys", 1000)), query.get("continuation-token", "")
        found: dict[str, bytes | None] = {}
        for name, data in sorted(self.state.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            found.setdefault(key if end < 0 else key[: end + 1], data if end < 0 else None)
        page = [(key, data) for key, data in found.items() if key > after][:limit]
        more = bool(page) and page[-1][0] != list(found)[-1]
        self._answer(200, _listing(prefix, page, page[-1][0] if more else None).encode())

    def _post_bucket(self, bucket: str, query: dict[str, str], body: bytes) -> None:
        assert "delete" in query
        for key in re.findall(r"<Key>(.*?)</Key>", body.decode()):
            self.state.objects.pop(f"{bucket}/{key}", None)
        self._answer(200, b"<DeleteResult/>")

    def _head_object(self, path: str, query: dict[str, str], body: bytes) -> None:
        self._answer(200, self._existing(path))

    def _get_object(self, path: str, query: dict[str, str], body: bytes) -> None:
        data = self._existing(path)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self._answer(200, data)
            return
        first, last = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
        self._answer(206, data[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(data)}"})

    def _put_object(self, path: str, query: dict[str, str], body: bytes) -> None:
        if "partNumber" in query:
            self.state.uploads[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.state.objects[path] = body
        self._answer(200)

    def _post_object(self, path: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            upload = uuid.uuid4().hex
            self.state.uploads[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
        else:
            parts = self.state.uploads.pop(query["uploadId"])
            self.state.objects[path] = b"".join(data for _, data in sorted(parts.items()))
            text = "<CompleteMultipartUploadResult><ETag>etag</ETag></CompleteMultipartUploadResult>"
        self._answer(200, text.encode())

    def _delete_object(self, path: str, query: dict[str, str], body: bytes) -> None:
        self.state.objects.pop(path, None)
        self._answer(204)

    def _existing(self, path: str) -> bytes:
        data = self.state.objects.get(path)
        if data is None:
            raise _RefusedError(404, "NoSuchKey")
        return data

    def _body(self) -> bytes:
        data = bytearray(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while length := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(length)
                self.rfile.readline()
            self.rfile.readline()
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            return _unchunked(bytes(data))
        return bytes(data)

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        plain = {"Content-Length": str(len(body)), "ETag": '"etag"', "Last-Modified": now, "Connection": "close"}
        for name, value in {**plain, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _listing(prefix: str, page: list[tuple[str, bytes | None]], next_token: str | None) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    entries = [
        f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
        if data is None
        else f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size><LastModified>{now}</LastModified>"
        "<ETag>etag</ETag></Contents>"
        for key, data in page
    ]
    token = f"<NextContinuationToken>{escape(next_token)}</NextContinuationToken>" if next_token else ""
    return (
        f"<ListBucketResult><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<IsTruncated>{'true' if next_token else 'false'}</IsTruncated>{token}{''.join(entries)}</ListBucketResult>"
    )


def _unchunked(data: bytes) -> bytes:
    """The body of an upload whose checksum comes at its end."""
    found, start = bytearray(), 0
    while start < len(data):
        end = data.index(b"\r\n", start)
        length = int(data[start:end].split(b";")[0], 16)
        if length == 0:
            break
        found += data[end + 2 : end + 2 + length]
        start = end + length + 4
    return bytes(found)
