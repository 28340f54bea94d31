"""How many partitions a query is worth."""

from __future__ import annotations

import pytest

from sparkfusion.plan.sizing import choose_partitions, scan_bytes
from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire.build import union
from tests.unit.plan.plans import plan


@pytest.mark.parametrize(
    ("scanned", "each", "upper", "expected"),
    [(0, 16, 8, 1), (1, 16, 8, 1), (16, 16, 8, 1), (17, 16, 8, 2), (10**12, 16, 8, 8), (3, 1, 2, 2), (100, 1, 1, 1)],
)
def test_choose_partitions(scanned: int, each: int, upper: int, expected: int) -> None:
    assert choose_partitions(scanned, each, upper) == expected


def test_files_count_with_their_size_or_their_range() -> None:
    scan = PlanNode()
    scan.parquet_scan.base_conf.file_groups.add().files.add(path="a", size=100)
    part = scan.parquet_scan.base_conf.file_groups.add().files.add(path="b", size=1000)
    part.range.start, part.range.end = 200, 250
    assert scan_bytes(scan) == 150
    assert scan_bytes(union([scan, scan])) == 300


def test_rows_in_memory_count_with_an_eighth_of_their_encoded_size() -> None:
    scan = plan("select k from t")
    assert scan_bytes(scan) == sum(len(rows) for rows in scan.memory_scan.partitions) // 8 > 0
    assert scan_bytes(plan("select 1 as k")) == 0
