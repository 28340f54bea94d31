"""Check that a query gives the same answer distributed as on a single node.

`assert_distributed_eq(session, sql)` for tests, `verify_query` and `Report` for many queries.
"""

from sparkfusion.verify.compare import Comparison, Difference, compare_tables
from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.declared_order import OrderKey
from sparkfusion.verify.report import Report
from sparkfusion.verify.result import Leg, Outcome, VerifyResult
from sparkfusion.verify.run_legs import assert_distributed_eq, verify_query

__all__ = [
    "CompareOptions",
    "Comparison",
    "Difference",
    "Leg",
    "OrderKey",
    "Outcome",
    "Report",
    "VerifyResult",
    "assert_distributed_eq",
    "compare_tables",
    "verify_query",
]
