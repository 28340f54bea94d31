"""The directory of one task on its executor: for rows that came in, spills, and frames that go out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sparkfusion.exchange.owned import OwnedDirectory, remove_orphans
from sparkfusion.runner.spark.spark_task import StageWiring, ToFiles


class TaskDirectories:
    """Directories below `home`, made when they are first used. `frames` is where frame files go."""

    def __init__(self, home: Path, frames: Path) -> None:
        self._home = home
        self.frames = frames

    def directory(self, name: str) -> Path:
        made = self._home / name
        made.mkdir(exist_ok=True)  # not its parents: the query may be over, and its directory gone
        return made


@contextmanager
def task_directories(wiring: StageWiring) -> Iterator[TaskDirectories]:
    """The directories of one task, removed when it is done.

    Spark kills the worker of a cancelled task without warning. If driver and executors share a machine, the directories
    are inside the query's directory, which the driver removes. Otherwise they are in Spark's own local directory, and
    locked: the next worker there removes what a killed worker left, and Spark removes everything when the executor
    ends.
    """
    if wiring.home:
        with tempfile.TemporaryDirectory(prefix="task-", dir=wiring.home, ignore_cleanup_errors=True) as home:
            yield TaskDirectories(Path(home), _frames(wiring, Path(home)))
        return
    base = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    remove_orphans(base)
    with closing(OwnedDirectory("task", base)) as owned:
        yield TaskDirectories(owned.path, _frames(wiring, owned.path))


def _frames(wiring: StageWiring, home: Path) -> Path:
    if isinstance(wiring.outlet, ToFiles):
        return Path(wiring.outlet.directory)
    made = home / "frames"
    made.mkdir()
    return made
