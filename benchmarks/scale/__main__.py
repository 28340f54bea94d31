"""`make bench-scale`: what coordination costs as queries and clusters grow. Nothing is computed.

    make bench-scale
    python -m benchmarks.scale --only cluster

First, queries that grow in one way each, up to 10,000 files, 1,000 partitions, 200 stages, a union of 100 queries and
500 columns. Each step doubles the size, so time that grows in proportion doubles too. Then a query of 100 stages on a
cluster of 1,000 workers that is simulated: the coordinator's own logic decides, and no process is started. One attempt
in a hundred fails, and ten workers are lost. Results go to `benchmarks/results/scale.json`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.record import write_json
from benchmarks.scale.growth import SHAPES, Cost, measure
from benchmarks.scale.simulated import SimulatedCluster, chain_of_shuffles

CLUSTER = "cluster"
CLUSTERS = ((25, 250), (50, 500), (100, 1000))


def main() -> None:
    only = parse_arguments().only
    found: dict[str, Any] = {"planning": [], CLUSTER: []}
    if only != CLUSTER:
        print("size                stages  tasks  DataFusion s  planning s  orders s  MB of orders  peak MB")
    with tempfile.TemporaryDirectory(prefix="scale-") as made:
        for shape in SHAPES:
            for size in shape.sizes if only in (None, shape.name) else ():
                cost = measure(shape, size, Path(made))
                show(cost)
                found["planning"].append({**asdict(cost), "peak_megabytes": peak_megabytes()})
    if only in (None, CLUSTER):
        print("\nworkers  stages    tasks  attempts  failures  coordinator s  µs an attempt  peak MB")
        for stages, workers in CLUSTERS:
            found[CLUSTER].append(simulate(stages, workers))
    write_json("scale", found)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*(shape.name for shape in SHAPES), CLUSTER], help="one part of it")
    return parser.parse_args()


def show(cost: Cost) -> None:
    print(
        f"{cost.size:6,} {cost.shape:12} {cost.stages:6} {cost.tasks:6} {cost.datafusion:13.2f} {cost.planning:11.2f}"
        f" {cost.orders:9.2f} {cost.order_bytes / 1e6:13.1f} {peak_megabytes():8.0f}",
        flush=True,
    )


def simulate(stages: int, workers: int) -> dict[str, float]:
    cluster = SimulatedCluster(chain_of_shuffles(stages, workers), workers, failing=0.01, losses=10)
    started = time.process_time()
    outcome = cluster.run()
    seconds = time.process_time() - started
    if outcome.ended != "finished":
        raise SystemExit(f"the simulated query has {outcome.ended}")
    each = seconds / outcome.attempts * 1e6
    print(
        f"{workers:7,} {stages:7} {stages * workers:8,} {outcome.attempts:9,} {outcome.failures:9,} {seconds:14.1f}"
        f" {each:14.0f} {peak_megabytes():8.0f}",
        flush=True,
    )
    return {"stages": stages, "workers": workers, "attempts": outcome.attempts, "seconds": round(seconds, 2)}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
