"""The engines that `make bench-all` knows, and the processes that they run in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkfusion.bench.referee import Nulls


@dataclass(frozen=True)
class Engine:
    """One engine with its settings.

    Attributes:
        name: how `--engines` and the results call it.
        title: how the report calls it.
        process: the process that it shares with others: a Spark context serves several engines. `serve.py` knows how
            to start it.
        ours: sparkfusion, whose answers have DataFusion's types and must be DataFusion's answers to the last digit of a
            decimal.
        nulls: where NULL is in a sort order that does not say it.
        by_default: whether it runs if no engines are chosen. Sail has to be installed first.
    """

    name: str
    title: str
    process: str
    ours: bool = False
    nulls: Nulls = "largest"
    by_default: bool = True


BASE = "datafusion"
"""What all times and answers are compared with. It always runs."""

ENGINES: tuple[Engine, ...] = (
    Engine(BASE, "DataFusion, single node", "datafusion"),
    Engine("local", "sparkfusion, in process", "local", ours=True),
    Engine("two-tasks", "sparkfusion, in process, two tasks", "two-tasks", ours=True),
    Engine("spark-files", "sparkfusion, Spark local[*], files", "spark", ours=True),
    Engine("spark-shuffle", "sparkfusion, Spark local[*], Spark's shuffle", "spark", ours=True),
    Engine("executors", "sparkfusion, two Spark executors", "executors", ours=True),
    Engine("flight", "sparkfusion, two Flight workers", "flight", ours=True),
    Engine("spark-sql", "Spark SQL, local[*]", "spark", nulls="smallest"),
    Engine("spark-sql-tuned", "Spark SQL, local[*], tuned", "spark", nulls="smallest"),
    Engine("spark-sql-executors", "Spark SQL, two executors, tuned", "executors", nulls="smallest"),
    Engine("sail", "Sail, local", "sail", nulls="smallest", by_default=False),
    Engine("sail-cluster", "Sail, local cluster", "sail-cluster", nulls="smallest", by_default=False),
    Engine("duckdb", "DuckDB", "duckdb"),
    Engine("polars", "Polars SQL", "polars"),
)
BY_NAME = {engine.name: engine for engine in ENGINES}


def choose(names: str) -> list[Engine]:
    """Engines by names with commas between them, in the order of the list. Empty means the default, `all` all of them.

    >>> [engine.name for engine in choose("duckdb,local")]
    ['datafusion', 'local', 'duckdb']
    """
    if names == "all":
        return list(ENGINES)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in BY_NAME]:
        raise ValueError(f"there is no engine {unknown[0]!r}; the engines are {', '.join(BY_NAME)}")
    if not wanted:
        return [engine for engine in ENGINES if engine.by_default]
    return [engine for engine in ENGINES if engine.name == BASE or engine.name in wanted]


def processes_of(engines: Sequence[Engine]) -> list[str]:
    """The processes that these engines need, each once."""
    return list(dict.fromkeys(engine.process for engine in engines))
