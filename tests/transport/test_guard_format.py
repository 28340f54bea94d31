"""Nothing in a plan is overlooked: what a worker does not know, wherever it stands, it does not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext, udaf, udf, udwf
from datafusion.plan import ExecutionPlan
from datafusion.user_defined import Accumulator, WindowEvaluator

from sparkfusion.errors import ProtocolError, UserError
from sparkfusion.ids import TaskKey
from sparkfusion.plan.wire.fields import raw_fields
from sparkfusion.plan.wire.format import EXPR, FORMAT, MANY, PLAN, VALUES
from sparkfusion.plan.wire.wire_pb2 import PlanNode
from sparkfusion.worker.server.guard import Guard
from tests.transport.plans import order_of_plan

KEY = TaskKey("q", 1, 0)
NODES = 45  # DataFusion 55 has 39 kinds of nodes, and 27 of expressions
EXPRESSIONS = 35
FIELDS = 17
NOT_RUN = {
    "extension", "explain", "analyze", "json_sink", "csv_sink", "parquet_sink", "symmetric_hash_join",
    "generate_series", "async_func", "scalar_subquery",
}  # fmt: skip
QUERIES = (
    "select k, v from p where v > 1 and k like 'a%' or k in ('x', 'y', 'z', 'u') order by k limit 3",
    "select k, sum(v) filter (where v > 1), count(distinct v) from p group by k having count(*) > 0",
    "select * from (select k, row_number() over (partition by k order by v) as n from p) where n < 3 limit 3",
    "select a.k, b.v from p a join c b on a.k = b.k and a.v < b.v left join p d on d.v > b.v",
    "select a.k from p a cross join (select v from c limit 1) union all select k from c",
    "select distinct case when v > 1 then cast(v as double) else -v end, abs(v), v is null, not k = 'a' from p",
    "select try_cast(k as int), v is distinct from 2, k ilike 'a' from p",
    "select unnest([v, 2]) as u from p",
    "select v from m union (select 1) intersect select v from c",
    "select array_transform([1, 2], x -> x + v) from p",
)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, as protobuf writes it."""

    def varint(value: int) -> bytes:
        low, rest = value & 127, value >> 7
        return bytes([low | 128]) + varint(rest) if rest else bytes([low])

    return varint(number << 3 | 2) + varint(len(content)) + content


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    base = tmp_path_factory.mktemp("tables")
    for name in ("allowed", "secret"):
        (base / name).mkdir()
        pq.write_table(pa.table({"k": ["a"], "v": [1]}), base / name / "t.parquet")
        pyarrow.csv.write_csv(pa.table({"k": ["a"], "v": [1]}), base / name / "t.csv")
    made = SessionContext(SessionConfig().with_target_partitions(3).set("datafusion.sql_parser.dialect", "duckdb"))
    made.register_parquet("p", str(base / "allowed" / "t.parquet"))
    made.register_csv("c", str(base / "allowed" / "t.csv"))
    made.register_record_batches("m", [[pa.record_batch({"v": [1]})]])
    made.register_parquet("secret", str(base / "secret" / "t.parquet"))
    return made


@pytest.fixture(scope="module")
def guard(context: SessionContext) -> Guard:
    scan = PlanNode.FromString(encoded(context, "select v from p")).parquet_scan.base_conf
    return Guard(roots=(Path(f"/{scan.file_groups[0].files[0].path}").parent.resolve(),))


@pytest.fixture(scope="module")
def secret(context: SessionContext) -> bytes:
    return encoded(context, "select * from secret")


def encoded(context: SessionContext, sql: str) -> bytes:
    return context.sql(sql).execution_plan().to_bytes(context)


def check(guard: Guard, plan: bytes) -> None:
    guard.check(order_of_plan(plan, KEY))


def accepts(guard: Guard, plan: bytes) -> bool:
    try:
        check(guard, plan)
    except UserError:
        return False
    return True


# ---- every kind there is


@pytest.mark.parametrize("number", range(1, NODES))
def test_every_node_is_known_or_refused(guard: Guard, secret: bytes, number: int) -> None:
    """A kind that runs is one that `wire.proto` walks into, and a plan below it is seen wherever it stands."""
    known = PlanNode.DESCRIPTOR.fields_by_number.get(number)
    runs = known is not None and known.name not in NOT_RUN
    assert (number in FORMAT[PLAN]) == runs
    body = FORMAT[FORMAT[PLAN][number]] if runs else {}
    for place in range(1, FIELDS):
        plan = field(number, field(place, secret))
        if body.get(place, "").removesuffix(MANY) == PLAN:
            with pytest.raises(UserError, match=r"may not read .*secret"):
                check(guard, plan)
        elif place not in body:
            with pytest.raises(ProtocolError, match=r"which the worker refuses|does not run plans"):
                check(guard, plan)


@pytest.mark.parametrize("number", range(1, EXPRESSIONS))
def test_every_expression_is_known_or_refused(guard: Guard, secret: bytes, number: int) -> None:
    unknown = {13, 17, 19, 22, 28, 29} | set(range(31, EXPRESSIONS))  # extensions, subqueries, and what 55 has not
    assert (number in FORMAT[EXPR]) == (number not in unknown)
    for place in range(1, FIELDS):
        expr = field(number, field(place, secret))
        if number in unknown or place not in FORMAT.get(FORMAT[EXPR][number], {}):
            filtered = field(12, field(1, b"") + field(2, expr))
            assert FORMAT[EXPR].get(number) in VALUES or not accepts(guard, filtered)


def test_no_message_is_named_without_being_described() -> None:
    kinds = {kind.removesuffix(MANY) for fields in FORMAT.values() for kind in fields.values()}
    assert kinds - {"number", "text", "function"} == FORMAT.keys() - {PLAN} | {PLAN}
    assert all(kind.removesuffix(MANY) not in (PLAN, EXPR) for name in VALUES for kind in FORMAT[name].values())


# ---- a plan hidden in a real one


def messages(plan: bytes) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """Every kind of message in a plan once: its name, and the places of the contents that lead there."""
    seen = set()
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [(PLAN, ((0, len(plan)),))]
    while waiting:
        name, way = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name, way
        for number, _, begin, end in raw_fields(plan, *way[-1]):
            kind = FORMAT[name].get(number, "").removesuffix(MANY)
            if kind in FORMAT:
                waiting.append((kind, (*way, (begin, end))))


def with_field(plan: bytes, way: tuple[tuple[int, int], ...], number: int, content: bytes) -> bytes:
    """The plan with a field more in the message at the end of the way."""
    begin, end = way[-1]
    changed = plan[begin:end] + field(number, content)
    for (outer, stop), (begin, end) in zip(way[-2::-1], way[:0:-1], strict=True):
        at = next(at for at, found in _starts(plan, outer, stop) if found == begin)
        number_of = next(number for number, _, found, _ in raw_fields(plan, outer, stop) if found == begin)
        changed = plan[outer:at] + field(number_of, changed) + plan[end:stop]
    return changed


def _starts(plan: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """For every field where its key is, and where its content is."""
    at = begin
    for _, _, content, stop in raw_fields(plan, begin, end):
        yield at, content
        at = stop


def decoded(context: SessionContext, plan: bytes) -> str:
    """What DataFusion makes of a plan; nothing if it cannot decode it."""
    try:
        return ExecutionPlan.from_bytes(context, plan).display_indent()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic is no Exception
        return ""


@pytest.mark.parametrize("sql", QUERIES)
def test_a_plan_hidden_in_any_message_is_never_read(
    context: SessionContext, guard: Guard, secret: bytes, sql: str
) -> None:
    """DataFusion is the judge: what a worker accepts, decodes to a plan that does not know the secret file."""
    plan = encoded(context, sql)
    check(guard, plan)
    tried = 0
    for _, way in messages(plan):
        for number in range(1, FIELDS):
            hiding = with_field(plan, way, number, secret)
            tried += 1
            if accepts(guard, hiding):
                assert "secret" not in decoded(context, hiding)
    assert tried > 50


# ---- ways out that were open


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("explain analyze select * from secret", "analyze"),
        ("explain analyze copy p to '/nowhere/t.parquet'", "analyze"),
        ("select v + (select max(v) from secret) from p", "scalar_subquery"),
        ("select * from generate_series(1, 3)", "generate_series"),
    ],
)
def test_nodes_that_hold_plans_we_do_not_cut_are_refused(
    context: SessionContext, guard: Guard, sql: str, kind: str
) -> None:
    with pytest.raises(ProtocolError, match=f"of kind '{kind}'"):
        check(guard, encoded(context, sql))


def test_a_symmetric_hash_join_hides_no_scan(guard: Guard, secret: bytes) -> None:
    with pytest.raises(ProtocolError, match="of kind 'symmetric_hash_join'"):
        check(guard, field(25, field(1, secret) + field(2, secret)))


def test_a_plan_that_says_something_twice_is_refused(guard: Guard, context: SessionContext) -> None:
    """Decoders differ in what they make of it, so the one that looks might see another plan than the one that runs."""
    plan = encoded(context, "select * from p")
    with pytest.raises(ProtocolError, match="repeats"):
        check(guard, plan + plan)
    with pytest.raises(ProtocolError, match="repeats"):
        check(guard, field(32, field(1, plan) + field(1, plan)))


class First(Accumulator):
    def state(self) -> list[pa.Scalar]:
        return [pa.scalar(1)]

    def update(self, *values: pa.Array) -> None:
        return

    def merge(self, states: list[pa.Array]) -> None:
        return

    def evaluate(self) -> pa.Scalar:
        return pa.scalar(1)


class Ones(WindowEvaluator):
    def evaluate_all(self, values: list[pa.Array], num_rows: int) -> pa.Array:
        return pa.array([1] * num_rows)


@pytest.mark.parametrize("sql", ["select same(v) from p", "select first(v) from p", "select ones(v) over () from p"])
def test_functions_that_travel_need_trust(context: SessionContext, sql: str) -> None:
    kind = pa.int64()
    context.register_udf(udf(lambda x: x, [kind], kind, "immutable", name="same"))
    context.register_udaf(udaf(First, [kind], kind, [kind], "immutable", name="first"))
    context.register_udwf(udwf(Ones, [kind], kind, "immutable", name="ones"))
    plan = encoded(context, sql)
    with pytest.raises(UserError, match="does not run Python functions") as refused:
        check(Guard(), plan)
    assert "--trust-python" in str(refused.value)
    check(Guard(trust_python=True), plan)


# ---- the rest of an order


def test_numbers_that_cannot_be_are_refused(context: SessionContext) -> None:
    order = order_of_plan(encoded(context, "select 1"), KEY)
    Guard().check(order)
    for changed in (
        replace(order, store_memory=-2),
        replace(order, patience=float("nan")),
        replace(order, patience=-1.0),
        replace(order, first=-1),
        replace(order, compression="rar"),
        replace(order, memory_limit=-1),
        replace(order, memory_limit=1 << 70),
    ):
        with pytest.raises(ProtocolError, match="an order's"):
            Guard().check(changed)


def test_an_option_names_no_directory_outside(context: SessionContext, guard: Guard) -> None:
    plan = encoded(context, "select 1")
    order = order_of_plan(plan, KEY, options={"datafusion.catalog.location": "/"})
    with pytest.raises(UserError, match="may not read '/'"):
        guard.check(order)
