"""Check that DataFusion's plan format is the one we know: once for each process, before the first plan is changed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion.errors import WireFormatError
from sparkfusion.plan.wire.tree import decode, encode, kind, walk

KNOWN_MAJOR = 55
_QUERY = "select k, count(*) from t group by k order by k"
_EXPECTED = {"sort_preserving_merge", "sort", "projection", "aggregate", "repartition", "memory_scan"}


@cache
def check_wire_format() -> None:
    """Encode a small plan, and raise a clear error if its fields are not where `wire.proto` has them."""
    installed = version("datafusion")
    if int(installed.split(".")[0]) != KNOWN_MAJOR:
        raise WireFormatError(
            f"sparkfusion knows the plan format of datafusion {KNOWN_MAJOR}, not that of {installed}",
            hint=f'pip install "datafusion>={KNOWN_MAJOR},<{KNOWN_MAJOR + 1}"',
        )
    context = SessionContext(SessionConfig().with_target_partitions(3))
    context.register_record_batches("t", [[pa.record_batch({"k": [1]})], [pa.record_batch({"k": [2]})]])
    data = context.sql(_QUERY).execution_plan().to_bytes(context)
    root = decode(data)
    found = {kind(node) for node in walk(root)}
    partitions = [n.repartition.partitioning.hash.partition_count for n in walk(root) if kind(n) == "repartition"]
    if found != _EXPECTED or partitions != [3] or len(encode(root)) != len(data):
        raise WireFormatError(
            f"datafusion {installed} encodes plans in a way that sparkfusion does not know",
            hint=f"install the datafusion release that this sparkfusion was made for ({KNOWN_MAJOR}.0)",
        )
