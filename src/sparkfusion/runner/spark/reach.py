"""Check that a store is really shared, before the first query that needs it, so that no frame file is missing later."""

from __future__ import annotations

import functools
import platform
import socket
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparkfusion.errors import ResourceError, SparkfusionError, UserError, first_words
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.ids import new_query_id
from sparkfusion.runner.spark.environment import check_executors, slots_to_ask
from sparkfusion.runner.spark.remote_home import RemoteHome
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.runner.spark.transfers import exists, read_bytes, write_bytes
from sparkfusion.urls import is_url, plain_path, show_url

if TYPE_CHECKING:
    from pyspark import SparkContext

_CONNECT_SECONDS = 5.0
_DRIVER = "the driver"
_TOKEN = "token.arrow"  # named like frames: what a driver leaves that dies meanwhile is known to be ours
_reached: weakref.WeakKeyDictionary[SparkContext, set[str]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Visit:
    """The result of one check task: the name of the file it wrote, or why it could not."""

    host: str
    left: str = ""
    problem: str = ""


Visitor = Callable[[Iterable[int]], Iterator[Visit]]
"""What a check task runs. It reads all its input."""


def check_reach(spark: SparkContext, url: str) -> None:
    """Make sure that driver and executors see the same files below a directory or URL; raises if they do not.

    The driver writes a token. Tasks on the executors read it and write files of their own, and the driver looks for
    those. Everything is removed again. This is done once for each context and store, and takes one small Spark job.
    """
    if url in _reached.get(spark, ()):
        return
    check_executors(spark)
    meet(url, functools.partial(_send, spark))
    _reached.setdefault(spark, set()).add(url)


def meet(
    url: str, send: Callable[[Visitor], Sequence[Visit]], *, here: str = _DRIVER, has_other_store: bool = True
) -> None:
    """Make sure that this process and tasks see the same files. `send` runs a visitor in tasks, as many as run at once.

    Args:
        here: what errors call this process.
        has_other_store: whether frames could be in Spark's shuffle as well, which the error then says.
    """
    token = uuid.uuid4().hex
    with _meeting_place(url) as place:
        _write(place, _TOKEN, token.encode())
        for visit in send(functools.partial(visit_place, place, token, here)):
            problem = visit.problem
            if not problem and not _is_there(place, visit.left):
                problem = f"{here} does not see files written there"
            if problem:
                raise _unreachable_store(url, visit.host, problem, here, has_other_store)


@contextmanager
def _meeting_place(url: str) -> Iterator[str]:
    """A directory or URL made like those of queries, so that it has the same permissions."""
    if is_url(url):
        with closing(RemoteHome(url, new_query_id())) as remote:
            yield remote.url
    else:
        with closing(SharedHome("reach", Path(plain_path(url)))) as shared:
            yield str(shared.path)


def _send(spark: SparkContext, visit: Visitor) -> Sequence[Visit]:
    tasks = slots_to_ask(spark)
    try:
        return spark.parallelize(range(tasks), tasks).mapPartitions(visit).collect()
    except Exception as error:
        raise spark_error(error, []) from error


def visit_place(place: str, token: str, writer: str, numbers: Iterable[int]) -> Iterator[Visit]:
    """On an executor: read the token and write a file. Errors come back as data; they call the token's writer so."""
    host, name = platform.node(), f"{uuid.uuid4().hex}.arrow"
    list(numbers)  # a task that does not read its input loses its worker
    try:
        if _read(place, _TOKEN) != token.encode():
            yield Visit(host, problem=f"another file is there in place of {writer}'s")
            return
        _write(place, name, token.encode())
    except (OSError, SparkfusionError) as error:
        yield Visit(host, problem=_words(error, writer))
    else:
        yield Visit(host, left=name)


def try_address(host: str, port: int, numbers: Iterable[int]) -> Iterator[Visit]:
    """On an executor: connect to the process with the session. Errors come back as data."""
    list(numbers)
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        yield Visit(platform.node(), problem=first_words(error))
    else:
        yield Visit(platform.node())


def _words(error: OSError | SparkfusionError, writer: str) -> str:
    if isinstance(error, FileNotFoundError):
        return f"the file that {writer} wrote is not there"
    if isinstance(error, PermissionError):
        return f"no permission to use {writer}'s files: executors run as another user"
    return error.message if isinstance(error, SparkfusionError) else first_words(error)


def _unreachable_store(url: str, host: str, problem: str, here: str, has_other_store: bool) -> SparkfusionError:
    instead = ", or set sparkfusion.store=spark, which needs no store" if has_other_store else ""
    if is_url(url):
        return UserError(
            f"the executor on {host} does not reach the store {show_url(url)}: {problem}",
            hint=f"give executors the network and the keys for it{instead}",
        )
    return ResourceError(
        f"the directory {plain_path(url)!r} is not shared with the executor on {host}: {problem}",
        hint=f"mount the same directory at this path on the machine of {here} and on every node of Spark, or set "
        f"sparkfusion.store_dir to one that is or to a URL such as s3://bucket/frames{instead}",
    )


def _read(place: str, name: str) -> bytes:
    return read_bytes(place, name) if is_url(place) else Path(place, name).read_bytes()


def _write(place: str, name: str, data: bytes) -> None:
    if is_url(place):
        write_bytes(place, name, data)
    else:
        Path(place, name).write_bytes(data)


def _is_there(place: str, name: str) -> bool:
    return exists(place, name) if is_url(place) else Path(place, name).exists()
