"""`sparkfusion worker`: a process that runs tasks for coordinators elsewhere."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparkfusion.config import available_cores
from sparkfusion.config.given_settings import TOKEN_VARIABLE
from sparkfusion.errors import UserError
from sparkfusion.shared_secrets import new_secret

if TYPE_CHECKING:
    from sparkfusion.observe.metrics_server import MetricsServer
    from sparkfusion.transport.flight.flight_worker import RunningWorker
    from sparkfusion.transport.flight.server import Tls

_FEWEST_CHARACTERS = 16


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 means any free port.",
)
@click.option(
    "--slots", type=click.IntRange(min=1), help="Tasks that run at the same time.  [default: one for each core]"
)
@click.option(
    "--token-file",
    metavar="FILE",
    help=f"File with the token that sessions must show. Without it: ${TOKEN_VARIABLE}, or a new token.",
)
@click.option("--tls-cert", metavar="FILE", help="The worker's certificate (PEM).")
@click.option("--tls-key", metavar="FILE", help="The private key of the certificate (PEM).")
@click.option(
    "--tls-ca",
    metavar="FILE",
    help="Authority (PEM) that must have signed the certificates of sessions and of other workers.",
)
@click.option(
    "--tls-peer-ca", metavar="FILE", help="Authority (PEM) of other workers' certificates; sessions then need none."
)
@click.option("--insecure", is_flag=True, help="Allow addresses other than loopback without TLS.")
@click.option(
    "--allow-root",
    "roots",
    metavar="DIR",
    multiple=True,
    help="Let tasks use only files below this directory. Can be repeated.",
)
@click.option("--trust-python", is_flag=True, help="Run Python functions that come with queries (pickled code).")
@click.option(
    "--task-processes/--no-task-processes",
    default=True,
    show_default=True,
    help="Run each task in a child process, so that a crash or a function that hangs ends only that task.",
)
@click.option("--store-dir", metavar="DIR", default="", help="Directory for intermediate data and spills.")
@click.option(
    "--lease-seconds",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    help="Stop the tasks of a session that is silent for this many seconds, and remove its files.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus on this port, at /metrics, without authentication; 0 means any free port.",
)
@click.option(
    "--metrics-host",
    default="127.0.0.1",
    show_default=True,
    help="Address for the metrics. Anyone who reaches it can read them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as a line of JSON.")
def worker(
    host: str,
    port: int,
    slots: int | None,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    tls_peer_ca: str | None,
    insecure: bool,
    roots: tuple[str, ...],
    trust_python: bool,
    task_processes: bool,
    store_dir: str,
    lease_seconds: float,
    metrics_port: int | None,
    metrics_host: str,
    as_json: bool,
) -> None:
    """Run tasks for sessions in other processes, until SIGTERM or Ctrl-C.

    \b
    Examples:
      sparkfusion worker --port 7070
      sparkfusion worker --port 7070 --metrics-port 9464
      sparkfusion worker --host 192.0.2.5 --port 7070 --tls-cert w.pem --tls-key w.key --token-file token
    """
    from sparkfusion.transport.flight.flight_worker import Listen, RunningWorker
    from sparkfusion.transport.process.children import Children
    from sparkfusion.worker.server.guard import Guard
    from sparkfusion.worker.server.worker_options import WorkerOptions

    token, made = _token(token_file)
    _check_store(store_dir)
    guard = Guard(roots=tuple(_directory(root) for root in roots), trust_python=trust_python)
    slots = slots or available_cores()
    options = WorkerOptions(slots, store_dir, guard, children=Children(slots) if task_processes else None)
    listen = Listen(host, port, token, _tls(tls_cert, tls_key, tls_ca, tls_peer_ca), insecure, lease_seconds)
    stop = _stop_on_signals()
    running = RunningWorker(listen, options)
    metrics = _serve_metrics(running, metrics_host, metrics_port)
    _tell_addresses(running.address, token if made else None, metrics.url if metrics is not None else None, as_json)
    _wait_for_signal(stop)
    if metrics is not None:
        metrics.close()
    if not running.close():
        sys.stdout.flush()
        os._exit(0)  # a caller hangs in the middle of a call; everything else is closed


def _tell_addresses(address: str, token: str | None, metrics: str | None, as_json: bool) -> None:
    """Print how to reach the worker and its metrics. `token`: the one that the worker made for itself."""
    if as_json:
        told = {"address": address, "pid": os.getpid(), "token": token, "metrics": metrics}
        click.echo(json.dumps({name: value for name, value in told.items() if value is not None}))
    else:
        shown = f"{address}?token={token}" if token is not None else address
        click.echo(f'ready: sparkfusion.connect("{shown}")')
        if metrics is not None:
            click.echo(f"metrics: {metrics}")
    sys.stdout.flush()


def _serve_metrics(running: RunningWorker, host: str, port: int | None) -> MetricsServer | None:
    if port is None:
        return None
    from sparkfusion.observe.metrics_server import MetricsServer
    from sparkfusion.observe.prometheus import render_text, worker_families

    try:
        return MetricsServer(lambda: render_text(worker_families(running.metrics(), time.time())), host, port)
    except BaseException:
        running.close()
        raise


def _check_store(directory: str) -> None:
    from sparkfusion.exchange.owned import unwritable

    if directory and not (Path(directory).is_dir() and os.access(directory, os.W_OK | os.X_OK)):
        raise UserError(unwritable(directory), hint="give --store-dir a directory that exists and may be written")


def _token(file: str | None) -> tuple[str, bool]:
    """The token, and whether it was generated here."""
    if file is None and not os.environ.get(TOKEN_VARIABLE):
        return new_secret(), True
    try:
        token = Path(file).read_text().strip() if file is not None else os.environ[TOKEN_VARIABLE].strip()
    except OSError as error:
        raise UserError(f"cannot read the token from {file!r}: {error.strerror}") from error
    if len(token) < _FEWEST_CHARACTERS or not token.isascii() or not token.isprintable():
        raise UserError(f"a token has at least {_FEWEST_CHARACTERS} characters, of printable ASCII")
    return token, False


def _tls(certificate: str | None, key: str | None, ca: str | None, peer_ca: str | None) -> Tls | None:
    from sparkfusion.transport.flight.server import Tls

    files = (certificate, key, ca, peer_ca)
    if files == (None, None, None, None):
        return None
    if certificate is None or key is None:
        raise UserError("TLS needs both --tls-cert and --tls-key")
    for file in filter(None, files):
        if not os.access(file, os.R_OK):
            raise UserError(f"cannot read {file!r}")
    return Tls(certificate, key, ca or "", peer_ca or "")


def _directory(root: str) -> Path:
    path = Path(root).resolve()
    if not path.is_dir():
        raise UserError(f"--allow-root {root!r} is not a directory")
    return path


def _stop_on_signals() -> queue.SimpleQueue[None]:
    """A queue that gets an item with each signal. An Event is not safe here: setting it takes a lock, which the main
    thread may hold when the handler interrupts it."""
    stop: queue.SimpleQueue[None] = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.put(None))
    return stop


def _wait_for_signal(stop: queue.SimpleQueue[None]) -> None:
    while True:
        try:
            return stop.get(timeout=0.5)  # with a timeout: on some systems, an endless wait does not notice signals
        except queue.Empty:
            continue
