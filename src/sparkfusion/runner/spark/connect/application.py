"""What is known of the Spark behind a Connect session: its cores, its versions, and which files it shares with us."""

from __future__ import annotations

import functools
import logging
import platform
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sparkfusion.config import Settings
from sparkfusion.errors import ResourceError, UserError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.runner.spark.choice import StoreChoice, check_local
from sparkfusion.runner.spark.connect.task_rows import ask_tasks
from sparkfusion.runner.spark.environment import MOST_TASKS, cluster_remedy, compare
from sparkfusion.runner.spark.executor_memory import ExecutorBudget, read_memory
from sparkfusion.runner.spark.feeding import LOOPBACK
from sparkfusion.runner.spark.master import attempts_on, names_one_machine
from sparkfusion.runner.spark.protection import network_protection
from sparkfusion.runner.spark.reach import Visit, Visitor, meet, try_address
from sparkfusion.runner.spark.shipping import build_zip
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.urls import is_url
from sparkfusion.versions import Environment, reporter

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_MOST_SLOTS = 4096
_log = logging.getLogger("sparkfusion")
_STORE_HINT = (
    "set sparkfusion.store_dir to a directory, or to a URL such as s3://bucket/frames, that this program and all "
    "executors reach"
)


@dataclass
class Findings:
    """What jobs have found out about the Spark of a Connect session. Each is asked for once, under the lock."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    slots: int | None = None
    checked: bool = False
    hosts: frozenset[str] = frozenset()
    reached: set[str] = field(default_factory=set)
    near: bool | None = None
    addresses: dict[tuple[str, int], bool] = field(default_factory=dict)


_found: weakref.WeakKeyDictionary[SparkSession, Findings] = weakref.WeakKeyDictionary()


class ConnectApplication:
    """The Spark application of one Connect session, which sessions of ours may share. Any thread may call any
    method."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._found = _found.setdefault(session, Findings())
        self.memory = ExecutorBudget(lambda: read_memory(self.master, self.conf))

    @property
    def host(self) -> str:
        """The server, as users name it; its token is left out."""
        return str(self.session.client.host)

    @functools.cached_property
    def master(self) -> str:
        """Spark's master; empty if the server does not report it."""
        return self.conf("spark.master") or ""

    @functools.cached_property
    def attempts(self) -> int:
        return attempts_on(self.master, self.conf("spark.task.maxFailures"))

    @functools.cached_property
    def cores_per_task(self) -> int | None:
        if names_one_machine(self.master):
            return None
        return int(self.conf("spark.task.cpus") or 1)

    @property
    def slots(self) -> int:
        """How many tasks Spark runs at once: as many as a DataFrame has partitions by default. Takes a tiny job."""
        with self._found.lock:
            if self._found.slots is None:
                self._found.slots = self._count_partitions()
            return self._found.slots

    def _count_partitions(self) -> int:
        from pyspark.sql.connect import functions

        try:
            numbers = self.session.range(_MOST_SLOTS).select(functions.spark_partition_id())
            return max(1, numbers.distinct().count())
        except Exception as error:
            raise spark_error(error, []) from error

    @property
    def is_checked(self) -> bool:
        return self._found.checked

    def check(self) -> None:
        """Compare versions with this process's, as on a classic session: once, and concurrent callers wait for it."""
        with self._found.lock:
            if not self._found.checked:
                compare(self._ask, self._ship, self._remedy)
                self._found.checked = True

    def check_reach(self, url: str) -> None:
        """Make sure that this process and all tasks see the same files below a directory or URL; raises if not."""
        self.check()
        with self._found.lock:
            if url not in self._found.reached:
                meet(url, self._send, here="this program", has_other_store=False)
                self._found.reached.add(url)

    def is_near(self) -> bool:
        """Whether tasks run on this machine and share its temporary directory with this process.

        The tasks of a cluster never count as near: executors may come later, on other machines.
        """
        self.check()
        with self._found.lock:
            if self._found.near is None:
                here = names_one_machine(self.master) and self._found.hosts == {platform.node()}
                self._found.near = here and self._shares_files()
            return self._found.near

    def feed_host(self) -> str:
        """The address of this process for tasks. Where they run elsewhere, only the user knows it."""
        if self.is_near():
            return LOOPBACK
        raise UserError(
            "sparkfusion.feed_transport is service, and this needs an address of this machine that tasks of Spark "
            f"Connect at {self.host} reach",
            hint="set sparkfusion.feed_host to that address, and sparkfusion.feed_port to a port that is open for "
            "them; or set sparkfusion.feed_transport to mailbox, which needs no connection",
        )

    def network_protection(self) -> str | None:
        """What asks to protect connections between tasks and this process; None if nothing does."""
        if self.is_near():
            return None
        secure = getattr(getattr(self.session.client, "_builder", None), "secure", False)
        return network_protection(self.conf) or ("the TLS of the Spark Connect session" if secure else None)

    def reaches_address(self, host: str, port: int) -> bool:
        """Whether all tasks can connect to this address of ours. Takes a small job, once for each address."""
        self.check()
        with self._found.lock:
            if (host, port) not in self._found.addresses:
                problems = [visit for visit in self._send(functools.partial(try_address, host, port)) if visit.problem]
                self._found.addresses[host, port] = not problems
                if problems:
                    _log.warning(
                        "the task on %s cannot connect to this program at %s:%s: %s. Work units of feeds go through "
                        "files of the store instead (sparkfusion.feed_transport)",
                        problems[0].host,
                        host,
                        port,
                        problems[0].problem,
                    )
            return self._found.addresses[host, port]

    def choose_store(self, settings: Settings) -> StoreChoice:
        """The store that the user set, otherwise the one that fits. Raises if there is none."""
        wanted, directory = settings.text("store"), settings.text("store_dir")
        if wanted == "spark":
            raise UserError(
                "sparkfusion.store is spark, but Spark Connect gives no access to Spark's shuffle", hint=_STORE_HINT
            )
        if wanted == "auto":
            wanted = "shared" if is_url(directory) or not self.is_near() else "local"
        check_local(wanted, directory)
        if wanted == "local" and not self.is_near():
            raise UserError(
                f"sparkfusion.store is local, but tasks of Spark Connect at {self.host} do not run on this machine",
                hint=f"set sparkfusion.store to shared, and {_STORE_HINT}",
            )
        if wanted == "shared" and not directory:
            raise UserError(
                f"no directory is shared with the tasks of Spark Connect at {self.host}, so intermediate data cannot "
                "be stored",
                hint=_STORE_HINT,
            )
        return StoreChoice("shared" if wanted == "shared" else "local", directory)

    def _shares_files(self) -> bool:
        try:
            self.check_reach(tempfile.gettempdir())
        except ResourceError:  # not for any error: what is found is kept
            return False
        return True

    def _ask(self) -> list[Environment]:
        answers: list[Environment] = list(ask_tasks(self.session, self._tasks_to_ask(), reporter()))
        self._found.hosts = frozenset(answer["host"] for answer in answers)
        return answers

    def _send(self, visit: Visitor) -> Sequence[Visit]:
        try:
            return ask_tasks(self.session, self._tasks_to_ask(), visit)
        except Exception as error:
            raise spark_error(error, []) from error

    def _tasks_to_ask(self) -> int:
        return min(self.slots, MOST_TASKS)

    def _ship(self) -> None:
        """Add the package to all tasks of this session, also on executors that come later. The server keeps it."""
        with closing(OwnedDirectory("package", Path(tempfile.gettempdir()))) as home:
            self.session.addArtifacts(str(build_zip(home.path)), pyfile=True)

    def _remedy(self, here: Environment, packages: Iterable[str]) -> str:
        if names_one_machine(self.master):
            return (
                f"start the Connect server with PYSPARK_PYTHON={sys.executable}, or with another Python that has them"
            )
        return cluster_remedy(here, packages)

    def conf(self, name: str) -> str | None:
        """A setting of the server's Spark; None if it is not set, or the server does not report it."""
        try:
            found = self.session.conf.get(name, None)
        except Exception as error:
            raise spark_error(error, []) from error
        return str(found) if found is not None else None
