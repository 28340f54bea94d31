"""A Spark context without Spark: what the choice of slots, CPUs and workers looks at."""

from __future__ import annotations

CLUSTER = "spark://head:7077"


class Conf(dict[str, str]):
    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802
        return list(self.items())


class Context:
    """As much of a Spark context as is looked at."""

    def __init__(self, master: str, at: tuple[int, int] = (1, 2), **conf: str) -> None:
        """`at`: how many executors there are, and how many cores each of them has."""
        self.master = master
        self.defaultParallelism = at[0] * at[1]
        self._executors = at[0]
        self._conf = Conf({f"spark.{name.replace('__', '.')}": value for name, value in conf.items()})

    def getConf(self) -> Conf:  # noqa: N802
        return self._conf

    @property
    def _jsc(self) -> Context:
        return self

    def sc(self) -> Context:
        return self

    def getExecutorMemoryStatus(self) -> Context:  # noqa: N802
        return self

    def size(self) -> int:
        return self._executors + 1
