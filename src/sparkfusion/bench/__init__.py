"""TPC-H on the user's own machine or cluster: `sparkfusion bench`, and `run_tpch` for a session that is already open.

It needs the extra `bench`, whose packages generate the tables and have the queries. The suites and the comparison of
answers are also used by the benchmarks and tests of the repository.
"""

from __future__ import annotations

from sparkfusion.bench.bench_result import BenchResult
from sparkfusion.bench.tpch_bench import run_tpch

__all__ = ["BenchResult", "run_tpch"]
