"""Which rows each task of a Spark job reads, if frames are in Spark's shuffle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect

SHAPES = {
    "some tasks read a shuffle, others only files": (
        "select k, count(*) as n from t group by k union all select k, v from t where v < 50"
    ),
    "tasks read different shuffles": (
        "select k, count(*) as n from t group by k union all select v % 3, sum(v) from t group by v % 3"
    ),
    "tasks read partitions of two shuffles side by side": (
        "select a.k, a.n, b.s from (select k, count(*) as n from t group by k) a"
        " join (select v % 9 as k, sum(v) as s from t group by v % 9) b on a.k = b.k"
    ),
    "all tasks read the same rows": "select v, n from t, (select count(*) as n from t where v > 3990) where v < n",
}


@pytest.mark.parametrize("query", SHAPES.values(), ids=SHAPES)
def test_tasks_get_their_rows(connect: Connect, tmp_path: Path, query: str) -> None:
    session = connect({**DISTRIBUTED, "sparkfusion.store": "spark", "sparkfusion.merge_small_partitions": False})
    session.register_parquet("t", write_parts(tmp_path))
    assert_distributed_like_single_node(session.sql(query))
