"""A table whose rows are the pages of an HTTP API. The server here is a stand-in on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa

import sparkfusion
from sparkfusion import feeds

PAGES, ROWS = 20, 50


class Api(BaseHTTPRequestHandler):
    """`/orders?cursor=7` gives 50 orders, and the cursor of the next page."""

    def do_GET(self) -> None:
        page = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        items = [{"id": page * ROWS + n, "country": ("NO", "PE", "JP")[n % 3], "total": n * 1.5} for n in range(ROWS)]
        body = json.dumps({"items": items, "next": page + 1 if page + 1 < PAGES else None}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sparkfusion.connect() as session:
            orders = feeds.HttpPages(
                f"http://127.0.0.1:{server.server_port}/orders",
                schema=pa.schema([("id", pa.int64()), ("country", pa.string()), ("total", pa.float64())]),
                rows="items",
                next=feeds.Cursor("next"),
            )
            session.register_feed("orders", orders)
            session.sql(
                "select country, count(*) as n, sum(total) as total from orders group by country order by 1"
            ).show()
            # a LIMIT is reached after the first pages: the others are never asked for
            print("first orders:", session.sql("select id from orders limit 3").to_pylist())
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
