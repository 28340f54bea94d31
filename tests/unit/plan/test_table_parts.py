"""Tables of the host: placeholders that travel, what is read of them, and files in their place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.ids import SourceFile
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.sources import bind, exchange_source
from sparkfusion.plan.stage import Stage
from sparkfusion.plan.table_parts import TableHint, bind_tables, mark_tables
from sparkfusion.plan.table_reads import TableRead, tables_read
from sparkfusion.plan.wire import PlanNode, decode, encode, file_scan_conf, walk
from sparkfusion.plan.wire.build import coalesce, union
from tests.unit.plan.plans import NO_BROADCAST, context, find

PARTS = 6
SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string()), ("share", pa.float64())])
HINTS = {0: TableHint("first", 1000 * PARTS, PARTS), 1: TableHint("the/second", 7, PARTS)}


@pytest.fixture
def made(tmp_path: Path) -> SessionContext:
    """Tables `first` and `second` of the host, of files that are no Arrow files; `third` is a real one."""
    made = context(NO_BROADCAST)
    for number, name in enumerate(("first", "second")):
        home = tmp_path / "home" / str(number)
        home.mkdir(parents=True)
        for part in range(PARTS):
            (home / f"{part:06d}.arrow").write_bytes(b"-")
        made.register_arrow(name, str(home), schema=SCHEMA)
    with pa.ipc.new_file(str(tmp_path / "third.arrow"), SCHEMA) as writer:
        writer.write_table(rows(100))
    made.register_arrow("third", str(tmp_path / "third.arrow"))
    return made


def rows(start: int) -> pa.Table:
    return pa.table({"number": [start, start + 1], "text": ["x", None], "share": [0.5, 1.5]}, SCHEMA)


@pytest.fixture
def marked(made: SessionContext, tmp_path: Path) -> Callable[[str], PlanNode]:
    """The plan of a query, marked."""

    def plan(sql: str) -> PlanNode:
        root = decode(made.sql(sql).execution_plan().to_bytes(made))
        mark_tables(root, str(tmp_path / "home"), HINTS)
        return root

    return plan


def paths(root: PlanNode) -> list[str]:
    confs = [conf for node in walk(root) if (conf := file_scan_conf(node)) is not None]
    return [file.path for conf in confs for group in conf.file_groups for file in group.files]


def answer(plan: bytes) -> list[dict[str, object]]:
    """Run every partition of a plan."""
    made = SessionContext()
    decoded = ExecutionPlan.from_bytes(made, plan)
    batches = [frame.to_pyarrow() for p in range(decoded.partition_count) for frame in made.execute(decoded, p)]
    return [row for batch in batches for row in batch.to_pylist()]


# ---- marking


def test_scans_of_the_hosts_tables_become_placeholders(made: SessionContext, tmp_path: Path) -> None:
    root = decode(made.sql("select number from first").execution_plan().to_bytes(made))
    assert mark_tables(root, str(tmp_path / "home"), HINTS)
    assert paths(root) == [f"sparkfusion-table/0/{part}/first part {part}" for part in range(PARTS)]
    assert scan_bytes(root) == PARTS * 1000
    assert str(tmp_path) not in str(encode(root))


def test_a_name_with_a_slash_is_one_part_of_a_path(marked: Callable[[str], PlanNode]) -> None:
    root = marked("select number from second")
    assert {path.count("/") for path in paths(root)} == {3}
    assert tables_read(root)[0].table == 1


def test_other_scans_stay_as_they_are(made: SessionContext, tmp_path: Path) -> None:
    root = decode(made.sql("select number from third").execution_plan().to_bytes(made))
    before = encode(root)
    assert not mark_tables(root, str(tmp_path / "home"), HINTS)
    assert not mark_tables(root, str(tmp_path / "ho"), HINTS), "a directory whose name begins alike"
    assert encode(root) == before
    assert tables_read(root) == ()


def test_ranges_are_cleared(tmp_path: Path) -> None:
    """A part is read whole, whatever a splitting of its placeholder would say."""
    scan = PlanNode()
    file = scan.arrow_scan.base_conf.file_groups.add().files.add(path=f"{tmp_path}/0/000003.arrow".lstrip("/"), size=1)
    file.range.start, file.range.end = 0, 1
    assert mark_tables(scan, str(tmp_path), HINTS)
    assert not file.HasField("range")
    assert scan_bytes(scan) == 1000


# ---- what is read


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select * from first", {"number", "text", "share"}),
        ("select text from first", {"text"}),
        ("select share + 1 as x from first where text = 'x'", {"text", "share"}),
        ("select text, count(*) from first group by text", {"text"}),
        ("select number as n from first", {"number"}),
        ("select 1 as one from first", set()),
        ("select count(*) from first", set()),
    ],
)
def test_columns_that_a_query_looks_at(marked: Callable[[str], PlanNode], sql: str, columns: set[str]) -> None:
    (read,) = tables_read(marked(sql))
    assert set(read.columns) == columns


def test_a_column_too_many_only_costs_time(marked: Callable[[str], PlanNode]) -> None:
    """Names are looked for in bytes; one that is missing would be a wrong answer."""
    (read,) = tables_read(marked("select number as text from first"))
    assert "number" in read.columns


def test_a_table_that_is_read_twice_is_one_read(marked: Callable[[str], PlanNode]) -> None:
    root = marked("select x.text, y.share from first x join first y on x.number = y.number")
    (read,) = tables_read(root)
    assert read.parts == tuple(range(PARTS))
    assert set(read.columns) == {"number", "text", "share"}
    several = tables_read(
        marked("select text from first union all select text from second union all select text from third")
    )
    assert [each.table for each in several] == [0, 1]


def test_a_task_reads_its_own_parts(marked: Callable[[str], PlanNode]) -> None:
    root = marked("select text from first union all select text from second")
    stage = Stage(1, encode(coalesce(root).coalesce_partitions.input), 6, (), 1, mergeable=False, deterministic=True)
    reads = [tables_read(decode(isolate(stage, (task,)).plan)) for task in range(6)]
    names = {0: "first", 1: "the_second"}
    assert reads == [
        (TableRead(table, names[table], parts, ("text",)),) for table in names for parts in ((0, 1), (2, 3), (4, 5))
    ]


# ---- binding


def test_files_take_the_place_of_parts(marked: Callable[[str], PlanNode], tmp_path: Path) -> None:
    files = {}
    for part in (1, 4):
        path = tmp_path / f"{part}.arrow"
        with pa.ipc.new_file(str(path), SCHEMA) as writer:
            writer.write_table(rows(10 * part))
        files[part] = SourceFile(str(path), path.stat().st_size)
    root = marked("select number, share from first where text is not null")
    bound = bind_tables(encode(root), lambda table, part: files.get(part) if table == 0 else None)
    assert answer(bound) == [{"number": 10, "share": 0.5}, {"number": 40, "share": 0.5}]
    assert tables_read(decode(bound)) == ()
    assert len(paths(decode(bound))) == 2


def test_without_a_file_there_are_no_rows(marked: Callable[[str], PlanNode]) -> None:
    """The groups stay, so that the plan keeps its partitions."""
    bound = bind_tables(encode(marked("select number, text from first")), lambda table, part: None)
    assert ExecutionPlan.from_bytes(SessionContext(), bound).partition_count == 3
    assert answer(bound) == []


def test_other_scans_are_not_bound(marked: Callable[[str], PlanNode]) -> None:
    plan = encode(marked("select number, text from third"))
    asked: list[int] = []
    bound = bind_tables(plan, lambda table, part: asked.append(part))
    assert (asked, answer(bound)) == ([], rows(100).select(["number", "text"]).to_pylist())


def test_tables_and_exchanges_are_bound_apart(marked: Callable[[str], PlanNode]) -> None:
    scan = find(marked("select number from first"), "arrow_scan")
    root = union([exchange_source(7, 2, scan.arrow_scan.base_conf.schema, 3), scan])
    bound = decode(bind_tables(encode(root), lambda table, part: SourceFile(f"/rows/{part}", 5)))
    assert paths(bound) == [
        "sparkfusion-exchange/7/0",
        "sparkfusion-exchange/7/1",
        *(f"rows/{p}" for p in range(PARTS)),
    ]
    bind(bound, lambda exchange, group: [SourceFile(f"/frames/{exchange}-{group}", 9)])
    assert paths(bound) == ["frames/7-0", "frames/7-1", *(f"rows/{part}" for part in range(PARTS))]
