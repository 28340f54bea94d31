"""The directory of one task on its executor: rows that came in, spills, frames on their way out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkfusion.exchange.owned import OwnedDirectory, remove_orphans
from sparkfusion.runner.spark.spark_task import StageWiring, ToFiles


class Workplace:
    """Directories below `home`, made when they are first asked for. `frames` is where frame files go."""

    def __init__(self, home: Path, frames: Path) -> None:
        self._home = home
        self.frames = frames

    def directory(self, name: str) -> Path:
        made = self._home / name
        made.mkdir(exist_ok=True)  # not its parents: the query may be over, and its directory gone
        return made


@contextmanager
def workplace(wiring: StageWiring) -> Iterator[Workplace]:
    """A place for one task, removed when it is done.

    Spark kills the worker of a cancelled task without a word. Where driver and executors share a machine the place is
    inside the query's directory, which the driver removes. Elsewhere it is in Spark's own local directory, locked: the
    next worker there removes what a killed one left, and Spark removes everything when the executor ends.
    """
    if wiring.home:
        home = Path(tempfile.mkdtemp(prefix="task-", dir=wiring.home))
        try:
            yield Workplace(home, _frames(wiring, home))
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return
    base = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    remove_orphans(base)
    owned = OwnedDirectory("task", base)
    try:
        yield Workplace(owned.path, _frames(wiring, owned.path))
    finally:
        owned.close()


def _frames(wiring: StageWiring, home: Path) -> Path:
    if isinstance(wiring.outlet, ToFiles):
        return Path(wiring.outlet.directory)
    made = home / "frames"
    made.mkdir()
    return made
