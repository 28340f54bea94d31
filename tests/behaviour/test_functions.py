"""Python functions of users travel inside plans: scalar, aggregate and window functions, whatever they close over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import Accumulator, udaf, udf, udwf
from datafusion.user_defined import WindowEvaluator

from sparkfusion import Session, UserError
from tests.behaviour.parts import TOTAL, assert_distributed_like_single_node
from tests.behaviour.probes import Counter, counting_udf

pytestmark = [
    pytest.mark.any_width,
    pytest.mark.sample("local", "flight", "spark-local"),  # functions travel to other processes
]


def test_scalar_function_with_a_closure(session: Session) -> None:
    factor = 3
    session.register_udf(udf(lambda v: pc.multiply(v, factor), [pa.int64()], pa.int64(), "immutable", "times"))
    found = assert_distributed_like_single_node(session.sql("select k, sum(times(v)) as s from t group by k"))
    assert sum(found["s"].to_pylist()) == 3 * sum(range(TOTAL))


def test_scalar_function_of_several_types(session: Session) -> None:
    def describe(k: pa.Array, v: pa.Array) -> pa.Array:
        return pa.array([f"{a}/{b}" if b % 2 else None for a, b in zip(k.to_pylist(), v.to_pylist(), strict=True)])

    session.register_udf(udf(describe, [pa.int64(), pa.int64()], pa.string(), "stable", "describe"))
    assert_distributed_like_single_node(session.sql("select describe(k, v) as d, count(*) as n from t group by 1"))


def test_scalar_function_in_every_place(session: Session) -> None:
    session.register_udf(udf(lambda v: pc.add(v, 1), [pa.int64()], pa.int64(), "immutable", "plus"))
    assert_distributed_like_single_node(
        session.sql(
            "select plus(a.k) as p, count(*) as n from t a join t b on plus(a.v) = plus(b.v)"
            " where plus(a.v) % 2 = 0 group by plus(a.k) having sum(plus(b.v)) > 1"
        )
    )


class Total(Accumulator):
    """Sum, with a state that has to be merged across tasks."""

    def __init__(self) -> None:
        self._sum = 0

    def update(self, *values: pa.Array) -> None:
        self._sum += pc.sum(values[0]).as_py() or 0

    def merge(self, states: list[pa.Array]) -> None:
        self._sum += pc.sum(states[0]).as_py() or 0

    def state(self) -> list[pa.Scalar]:
        return [pa.scalar(self._sum)]

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(self._sum)


def test_aggregate_function(session: Session) -> None:
    session.register_udaf(udaf(Total, [pa.int64()], pa.int64(), [pa.int64()], "immutable", "total"))
    frame = session.sql("select k, total(v) as s from t group by k")
    assert frame.distribution().distributed, frame.distribution().reason
    found = assert_distributed_like_single_node(frame)
    assert sum(found["s"].to_pylist()) == sum(range(TOTAL))
    assert session.sql("select total(v) as s from t where v >= 0").to_pylist() == [{"s": sum(range(TOTAL))}]


class Doubled(WindowEvaluator):
    def evaluate_all(self, values: list[pa.Array], num_rows: int) -> pa.Array:
        return pc.multiply(values[0], 2)


def test_window_function(session: Session) -> None:
    session.register_udwf(udwf(Doubled, [pa.int64()], pa.int64(), "immutable", "doubled"))
    frame = session.sql("select k, v, doubled(v) over (partition by k order by v) as d from t")
    found = assert_distributed_like_single_node(frame)
    assert sorted(found["d"].to_pylist()) == [2 * v for v in range(TOTAL)]


def test_function_is_called_once_for_each_row(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(counting_udf(counter, "counted"))
    session.sql("select k, sum(counted(v)) as s from t group by k").collect()
    assert counter.value == TOTAL


def test_volatile_function_makes_its_stage_not_repeatable(session: Session) -> None:
    session.register_udf(udf(lambda v: v, [pa.int64()], pa.int64(), "volatile", "vol"))
    session.register_udf(udf(lambda v: v, [pa.int64()], pa.int64(), "immutable", "imm"))

    def first_stage(function: str) -> Any:
        graph = session.sql(f"select k, sum({function}(v)) as s from t group by k").distribution().graph
        assert graph is not None
        return graph.stages[0]

    assert first_stage("imm").deterministic
    assert not first_stage("vol").deterministic


def test_deregistered_function_is_gone(session: Session) -> None:
    session.register_udf(udf(lambda v: v, [pa.int64()], pa.int64(), "immutable", "same"))
    session.deregister_udf("same")
    with pytest.raises(UserError, match="same"):
        session.sql("select same(v) from t")


def test_replaced_function_is_the_new_one(session: Session) -> None:
    for number in (1, 2):
        session.register_udf(udf(lambda v, n=number: pc.add(v, n), [pa.int64()], pa.int64(), "immutable", "bump"))
    assert session.sql("select min(bump(v)) as m from t where v >= 0").to_pylist() == [{"m": 2}]
