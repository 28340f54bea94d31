"""The runner that runs tasks on workers, over any transport."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from sparkfusion.config import Settings
from sparkfusion.errors import ExternalError, SparkfusionError, UserError
from sparkfusion.live_objects import LiveObjects
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.coordinated_job import begin_or_cancel
from sparkfusion.runner.members import Member, at_once
from sparkfusion.runner.pickled_functions import PickledFunctions
from sparkfusion.runner.worker_job import WorkerJob
from sparkfusion.shared_secrets import new_secret
from sparkfusion.transport.base import WorkerChannel
from sparkfusion.transport.membership import Cluster
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.server.version import WorkerInfo, difference

_MOST_DIRECTORIES = 16  # of which is remembered whether workers reach them
_log = logging.getLogger("sparkfusion")


class ClusterRunner:
    """Runs queries on workers. The list of workers is asked for again for each query; connections are kept."""

    spark = None
    cores_per_task = None
    machine_memory = 0

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._access = cluster.access()
        self._lock = threading.Lock()
        self._channels: dict[str, WorkerChannel] = {}
        self._jobs: LiveObjects[WorkerJob] = LiveObjects()
        self._reached: dict[Path, bool] = {}
        try:
            self._known = _seats(self._usable())
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """The slots of the workers that answered when they were last asked."""
        return sum(info.slots for _, info in self._known)

    @property
    def machines(self) -> int:
        return len(self._known)

    def start(self, job: QueryJob) -> RunningJob:
        members = self._usable()
        self._known = _seats(members)
        running = WorkerJob(job, members, PickledFunctions.pickle_all(job, "workers"), self._cluster)
        self._jobs.add(running)
        return begin_or_cancel(running)

    def takes_wide_tasks(self, settings: Settings) -> bool:
        return True

    def reaches(self, directory: Path) -> bool:
        """Checked once for each directory: every worker must see a file there, and be able to write beside it."""
        known = self._reached.get(directory)
        if known is None:
            existing = next(path for path in (directory, *directory.parents) if path.is_dir())
            known = self._all_reach(existing)
            if len(self._reached) >= _MOST_DIRECTORIES:
                self._reached.clear()
            self._reached[directory] = known
        return known

    def shares_files(self, settings: Settings) -> bool:
        return self.reaches(Path(settings.directory() or tempfile.gettempdir()).absolute())

    def describe(self, settings: Settings, graph: StageGraph | None = None) -> str:
        count = len(self._known)
        workers, slots = "worker" if count == 1 else "workers", "slot" if self.slots == 1 else "slots"
        addresses = ", ".join(channel.address for channel, _ in self._known)
        return f"on {count} {workers} with {self.slots} {slots}: {addresses}"

    def has_queries(self) -> bool:
        """Whether a query runs here now."""
        return any(job.is_running() for job in self._jobs)

    def close(self) -> None:
        for job in self._jobs:
            job.close()
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.close()

    # ---- members

    def _usable(self) -> list[Member]:
        """Ask every worker for its version. Workers that do not answer, or that have another version, are left out."""
        addresses = self._cluster.addresses()
        with self._lock:  # not closed either, see below
            self._channels = {each: self._channels[each] for each in addresses if each in self._channels}
        answers = at_once(self._ask, addresses)
        found = [answer for answer in answers if isinstance(answer, Member)]
        if not found:
            raise _nobody(addresses, [answer for answer in answers if isinstance(answer, SparkfusionError)])
        for answer in answers:
            if isinstance(answer, SparkfusionError):
                _log.warning("a worker is not used: %s", answer.message)
        return found

    def _ask(self, address: str) -> Member | SparkfusionError:
        try:
            with self._lock:
                if address not in self._channels:
                    self._channels[address] = connect(address, self._access)
                channel = self._channels[address]
            info = channel.info()
        except SparkfusionError as error:
            with self._lock:  # not closed: queries may be using it. It goes with the last of them
                self._channels.pop(address, None)
            return error
        other = difference(info)
        return Member(channel, info) if other is None else UserError(f"worker {channel.address} has {other}")

    def _all_reach(self, directory: Path) -> bool:
        content = new_secret()
        try:
            probe = tempfile.NamedTemporaryFile("w", prefix="sparkfusion-reach-", dir=directory)  # noqa: SIM115
        except OSError:
            return False
        with probe:
            probe.write(content)
            probe.flush()
            name = Path(probe.name).name
            try:
                return all(channel.reaches(str(directory), name, content) for channel, _ in self._known)
            except SparkfusionError:
                return False


def _seats(members: Sequence[Member]) -> list[tuple[WorkerChannel, WorkerInfo]]:
    """The workers, without the state that belongs to one query."""
    return [(member.channel, member.info) for member in members]


def _nobody(addresses: Sequence[str], errors: Sequence[SparkfusionError]) -> SparkfusionError:
    if not addresses:
        return UserError("there are no workers to connect to", hint="start some: sparkfusion worker --port 7070")
    if len(errors) == 1:
        return errors[0]
    words = "; ".join(error.message for error in errors)
    kind = UserError if all(isinstance(error, UserError) for error in errors) else ExternalError
    return kind(f"none of {len(addresses)} workers can be used: {words}", hint=errors[0].hint)
