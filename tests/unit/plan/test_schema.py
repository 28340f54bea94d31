"""The schema of a part of a plan, for every Arrow type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.sources import exchange_source
from sparkfusion.plan.wire import PlanNode, decode
from sparkfusion.plan.wire.build import hash_repartition
from tests.unit.plan.plans import context, find, plan

TYPES: list[pa.DataType] = [
    pa.null(), pa.bool_(),
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(38, 10), pa.decimal256(60, 5),
    pa.string(), pa.large_string(), pa.string_view(),
    pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"),
    pa.duration("ms"), pa.month_day_nano_interval(),
    pa.list_(pa.int64()), pa.large_list(pa.string()), pa.list_(pa.float32(), 3),
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string_view()))]),
    pa.map_(pa.string(), pa.list_(pa.int32())),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()),
    pa.list_(pa.struct([("d", pa.dictionary(pa.int16(), pa.string()))])),
]  # fmt: skip


@pytest.fixture(scope="module")
def probe() -> SchemaProbe:
    return SchemaProbe(context())


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_is_described(probe: SchemaProbe, kind: pa.DataType) -> None:
    made = context()
    schema = pa.schema([("c", kind), ("n", pa.int64())])
    made.register_record_batches("typed", [[pa.RecordBatch.from_pylist([], schema=schema)]])
    for sql in ("select c, n from typed", "select c, n from typed where n > 1"):
        described = probe.describe(decode(made.sql(sql).execution_plan().to_bytes(made)))
        assert described.arrow.types == schema.types
        assert described.arrow.names == schema.names


def test_encoding_and_describing_agree(probe: SchemaProbe) -> None:
    """An exchange source with the encoded schema has the described schema."""
    described = probe.describe(plan("select k, s, sum(v) as total from t group by k, s"))
    source = exchange_source(1, 2, described.encoded, len(described.arrow))
    assert probe.describe(source).arrow == described.arrow


def test_zero_columns(probe: SchemaProbe) -> None:
    empty = probe.encode(pa.schema([]))
    assert empty == b""
    assert len(probe.describe(exchange_source(1, 1, empty, 0)).arrow) == 0


def test_partial_aggregates_have_their_state_columns(probe: SchemaProbe) -> None:
    root = plan("select k, avg(v) as a from t group by k")
    partial = find(root, "repartition").repartition.input
    assert probe.describe(partial).arrow.names == ["k", "avg(t.v)[count]", "avg(t.v)[sum]"]


def test_a_shuffle_has_the_schema_of_its_input(probe: SchemaProbe) -> None:
    node = plan("select k, s from t")
    assert probe.describe(hash_repartition(node, [], 3)).arrow == probe.describe(node).arrow


def test_columns_may_have_the_same_name(probe: SchemaProbe) -> None:
    described = probe.describe(plan("select a.v, b.v, a.k, b.s from t a cross join u b"))
    assert sorted(described.arrow.names) == ["k", "s", "v", "v"]
    assert described.encoded


def test_describing_computes_nothing(probe: SchemaProbe) -> None:
    """An aggregate without groups gives a row even over nothing; what is computed from it must not fail."""
    assert probe.describe(plan("select 100 / count(*) as share from t where v > 3")).arrow.names == ["share"]


def test_an_interleave_of_exchange_sources_is_described(probe: SchemaProbe) -> None:
    described = probe.describe(plan("select k, s from t"))
    node = PlanNode()
    node.interleave.inputs.extend(exchange_source(i, 3, described.encoded, 2) for i in (1, 2))
    assert probe.describe(node).arrow == described.arrow
