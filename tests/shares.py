"""How the processes of a parallel run share the tests.

A module stays in one process, because its tests share sessions. What is expensive to start is not started in all of
them: `--jvms 1` gives the modules that need Spark to one process, and those of Spark Connect to one. Tests on Flight
workers run in two. The tests of `tests/cluster` share one cluster, so they run in one process. They mostly wait, and
the others use the cores.
"""

from __future__ import annotations

import re

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.runners import CONNECT, FLIGHT, ON_SPARK, WORKERS

CLUSTER = "cluster"
_WITH_WORKERS = 2
"""That many processes start Flight workers."""


class Shares(LoadScopeScheduling):  # type: ignore[misc]
    """Tests by module, and modules that need a JVM by JVM."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        self._jvms = int(config.getoption("--jvms"))
        self._modules: dict[str, list[str]] = {}

    def _split_scope(self, nodeid: str) -> str:
        """The tests of one scope run in one process."""
        module = nodeid.partition("::")[0]
        needed = server_of(nodeid)
        if not self._jvms or needed is None:
            return module
        if needed in (CLUSTER, CONNECT):
            return needed
        processes = _WITH_WORKERS if needed == FLIGHT else self._jvms
        modules = self._modules.setdefault(needed, [])
        if module not in modules:
            modules.append(module)
        return f"{needed} {modules.index(module) % processes}"


def server_of(nodeid: str) -> str | None:
    """What a test needs that takes long to start: a Spark of its own, a Spark Connect server, a cluster, Flight
    workers, or nothing.

    >>> server_of("tests/behaviour/test_queries.py::test_query[spark-shared-inner]")
    'spark'
    >>> server_of("tests/connect/test_connect_tables.py::test_types")
    'connect'
    >>> server_of("tests/cluster/test_cancel.py::test_cancel_in_the_middle[spark]")
    'cluster'
    >>> server_of("tests/behaviour/test_queries.py::test_query[flight-3-inner]")
    'flight'
    >>> server_of("tests/behaviour/test_queries.py::test_query[local-spark]")
    """
    module, _, test = nodeid.partition("::")
    if module.startswith("tests/cluster/"):
        return CLUSTER
    runner = next(iter(re.findall(rf"\[({'|'.join((CONNECT, *ON_SPARK, *WORKERS))})[-\]]", test)), None)
    if runner == CONNECT or module.startswith("tests/connect/"):
        return CONNECT
    if runner in WORKERS:
        return FLIGHT
    return "spark" if runner is not None or module.startswith("tests/spark/") else None
