"""TPC-H where a user's queries run: `sparkfusion bench`, and `run_tpch` for a session that is open already.

It needs the extra `bench`, whose packages generate the tables and know the queries. What the benchmarks and the tests
of the repository share is here too: the suites and the referee of answers.
"""

from __future__ import annotations

from sparkfusion.bench.bench_result import BenchResult
from sparkfusion.bench.tpch_bench import run_tpch

__all__ = ["BenchResult", "run_tpch"]
