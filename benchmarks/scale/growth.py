"""What planning costs as a query grows: the time of DataFusion and of sparkfusion, and the size of task orders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from sparkfusion.plan.isolate import isolate
from sparkfusion.runner.adapt import one_task_per_partition

_TARGET = "datafusion.execution.target_partitions"


@dataclass(frozen=True)
class Shape:
    """A way for a query to grow. `write` makes a table of some size, and returns its directory."""

    name: str
    sizes: Sequence[int]
    write: Callable[[Path, int], Path]
    sql: Callable[[int], str]
    partitions: Callable[[int], int] = lambda size: 4


@dataclass(frozen=True)
class Cost:
    """Seconds of DataFusion's planning alone, of ours with it, and of making all task orders; and their bytes."""

    shape: str
    size: int
    stages: int
    tasks: int
    datafusion: float
    planning: float
    orders: float
    order_bytes: int


def write_files(directory: Path, count: int, columns: int = 2) -> Path:
    """So many copies of one small file."""
    place = directory / f"{count}-{columns}"
    if not place.exists():
        place.mkdir(parents=True)
        first = place / "0.parquet"
        pq.write_table(pa.table({f"c{number}": [1, 2, 3] for number in range(columns)}), first)
        for number in range(1, count):
            (place / f"{number}.parquet").write_bytes(first.read_bytes())
    return place


def write_few(directory: Path, size: int) -> Path:
    del size
    return write_files(directory, 8)


def nested_groups(stages: int) -> str:
    """Groups of groups: each level is a stage, because it groups by another column. Eight levels, and a union
    of such queries: a plan must not be nested too deep."""
    branch = "select c0 as a, sum(c1) as b from t where c1 <> {number} group by c0"
    for _ in range(7):
        branch = f"select b as a, sum(a) as b from ({branch}) group by b"
    return " union all ".join(branch.format(number=number) for number in range(stages // 8))


def union_of(count: int) -> str:
    parts = (f"select c0, sum(c1) as n from t where c1 <> {number} group by c0" for number in range(count))
    return " union all ".join(parts)


def sums_of(columns: int) -> str:
    return f"select c0, {', '.join(f'sum(c{number})' for number in range(1, columns))} from t group by c0"


GROUPED = "select c0, sum(c1) as n from t group by c0"
SHAPES = (
    Shape("files", (1250, 2500, 5000, 10000), write_files, lambda size: GROUPED, lambda size: 100),
    Shape("partitions", (125, 250, 500, 1000), lambda place, size: write_files(place, 1000), lambda size: GROUPED, int),
    Shape("stages", (24, 48, 96, 200), write_few, nested_groups),
    Shape("union", (12, 25, 50, 100), write_few, union_of),
    Shape("columns", (62, 125, 250, 500), lambda place, size: write_files(place, 8, size), sums_of),
)


def measure(shape: Shape, size: int, directory: Path) -> Cost:
    settings = {"sparkfusion.bytes_per_partition": 1, _TARGET: shape.partitions(size)}
    with sparkfusion.connect(config=settings) as session:
        session.register_parquet("t", str(shape.write(directory, size)))
        query = session.sql(shape.sql(size))
        started = time.perf_counter()
        query.to_datafusion().execution_plan()
        plain = time.perf_counter()
        graph = query.distribution().graph
        planned = time.perf_counter()
        if graph is None:
            raise SystemExit(f"{shape.name} {size}: the query is not distributed")
        orders = [isolate(stage, each) for stage in graph.stages for each in one_task_per_partition(stage.task_count)]
        made = time.perf_counter()
    return Cost(
        shape.name,
        size,
        len(graph.stages),
        len(orders),
        plain - started,
        planned - plain,
        made - planned,
        sum(len(order.plan) for order in orders),
    )
