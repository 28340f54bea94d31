"""Names of frame files on workers: `<address>/<stage>-<task>-<attempt>/<file>`."""

from __future__ import annotations

import re

from sparkfusion.errors import ProtocolError
from sparkfusion.exchange.manifest import FrameFile
from sparkfusion.ids import StageId, TaskKey

_NAME = re.compile(r"(\d{1,9})-(\d{1,9})-(\d{1,9})/[\w.-]{1,200}")


def name_of(key: TaskKey, file: FrameFile) -> str:
    """The name of a file in the worker's report."""
    return f"{key.stage}-{key.task}-{key.attempt}/{file.path.rsplit('/', 1)[-1]}"


def frame_address(address: str, name: str) -> str:
    return f"{address}/{name}"


def split_frame_address(frame: str) -> tuple[str, str]:
    """The address of the worker, and the name of the file on it.

    >>> split_frame_address("flight://host:1/2-0-1/0-000000.arrow")
    ('flight://host:1', '2-0-1/0-000000.arrow')
    """
    address, *name = frame.rsplit("/", 2)
    if len(name) != 2 or not address:
        raise ProtocolError(f"{frame!r} is not a frame name of a worker")
    return address, "/".join(name)


def attempt_of_frame(name: str) -> tuple[StageId, int, int]:
    """The stage, task and attempt that wrote a file.

    >>> attempt_of_frame("2-0-1/0-000000.arrow")
    (2, 0, 1)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ProtocolError(f"{name!r} is not a frame name of a worker")
    stage, task, attempt = map(int, found.groups())
    return stage, task, attempt
