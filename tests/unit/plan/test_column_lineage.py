"""Which scans need only rows with keys of which other scans."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

from sparkfusion.plan.column_lineage import Relation, Transfer, find_transfers, group_columns
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.wire import decode
from tests.unit.plan.plans import NO_BROADCAST, context

DIRECT = ["a.ak=>b.bk", "b.bk=>a.ak"]
TRANSFERS = {
    "inner": ("select 1 from a join b on ak = bk", DIRECT),
    "inner of an inner join": (
        "select 1 from a join b on ak = bk join c on bk = ck",
        [*DIRECT, "a.ak=>c.ck", "b.bk=>c.ck", "c.ck=>a.ak", "c.ck=>b.bk"],
    ),
    "left: the left side stays": ("select av, bv from a left join b on ak = bk", ["a.ak=>b.bk"]),
    "right: the right side stays": ("select av, bv from a right join b on ak = bk", ["b.bk=>a.ak"]),
    "full": ("select av, bv from a full join b on ak = bk", []),
    "semi": ("select av from a where exists (select 1 from b where ak = bk)", DIRECT),
    "anti": ("select av from a where not exists (select 1 from b where ak = bk)", ["a.ak=>b.bk"]),
    "mark": ("select av from a where exists (select 1 from b where ak = bk) or av = 1", ["a.ak=>b.bk"]),
    "not in": ("select av from a where ak not in (select bk from b)", []),
    "nulls match": ("select av from a join b on ak is not distinct from bk", []),
    "the kept side of a left join": (
        "select av, bv from c join (select ak, av, bv from a left join b on ak = bk) x on ck = ak",
        ["a.ak=>b.bk", "a.ak=>c.ck", "c.ck=>a.ak", "c.ck=>b.bk"],
    ),
    "the optional side of a left join": (
        "select av, bv from c full join (select bk, av, bv from a left join b on ak = bk) x on ck = bk",
        ["a.ak=>b.bk"],
    ),
    "below an aggregate by the key": (
        "select 1 from a join (select bk, max(bv) m from b group by bk) x on ak = bk",
        DIRECT,
    ),
    "not below an aggregate of the key": ("select 1 from a join (select max(bk) m from b group by bv) x on ak = m", []),
    "not below grouping sets": (
        "select 1 from a join (select bk, count(*) n from b group by grouping sets ((bk), (bv))) x on ak = bk",
        [],
    ),
    "not below a limit": ("select 1 from a join (select bk from b limit 3) x on ak = bk", []),
    "not below a window": ("select w from a join (select bk, sum(bv) over (order by bv) w from b) x on ak = bk", []),
    "not below a union": ("select 1 from a join (select bk from b union all select ck from c) x on ak = bk", []),
    "a computed key": ("select 1 from a join b on ak = bv + 1", ["a.ak=>b.b.bv + Int64(1)", "b.b.bv + Int64(1)=>a.ak"]),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    made = context({**NO_BROADCAST, "datafusion.optimizer.repartition_file_min_size": "1"})
    directory = tmp_path_factory.mktemp("tables")
    for name in "abc":
        rows = pa.table({f"{name}k": [1, 2, None], f"{name}v": [1, 2, 3], f"{name}t": ["1", "2", "3"]})
        pq.write_table(rows, directory / f"{name}.parquet")
        made.register_parquet(name, str(directory / f"{name}.parquet"))
    return made


def transfers(tables: SessionContext, sql: str) -> list[Transfer]:
    probe = SchemaProbe(context())
    root = decode(tables.sql(sql).execution_plan().to_bytes(tables))
    return find_transfers(root, lambda node: probe.describe(node).arrow)


def name_of(relation: Relation) -> str:
    return "groups" if relation.aggregate else relation.schema.names[0][0]


def show(found: list[Transfer]) -> list[str]:
    return sorted(
        f"{name_of(t.source.relation)}.{t.source.relation.schema.names[t.source.column]}=>"
        f"{name_of(t.target.relation)}.{t.target.relation.schema.names[t.target.column]}"
        for t in found
    )


@pytest.mark.parametrize(("sql", "expected"), TRANSFERS.values(), ids=TRANSFERS)
def test_keys_go_where_rows_without_a_match_do_not_matter(
    tables: SessionContext, sql: str, expected: list[str]
) -> None:
    assert show(transfers(tables, sql)) == sorted(expected)


def test_a_filtered_aggregate_is_a_source_and_what_it_reads_is_none_of_its_targets(tables: SessionContext) -> None:
    sql = "select 1 from a join (select bk from b group by bk having sum(bv) > 1) x on ak = bk"
    found = transfers(tables, sql)
    assert show(found) == ["a.ak=>b.bk", "b.bk=>a.ak", "groups.bk=>a.ak"]
    (groups,) = [t.source.relation for t in found if t.source.relation.aggregate]
    assert group_columns(groups) == [0]


def test_a_join_that_reads_a_scan_directly_saves_nothing(tables: SessionContext, tmp_path: Path) -> None:
    """With a collected build side, it is the first to see the rows of its other side."""
    collecting = context()
    for name in "ab":
        pq.write_table(pa.table({f"{name}k": [1, 2], f"{name}v": [1, 2]}), tmp_path / f"{name}.parquet")
        collecting.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    direct = {t.saves for t in transfers(collecting, "select av, bv from a join b on ak = bk")}
    shuffled = {t.saves for t in transfers(tables, "select av, bv from a join b on ak = bk")}
    assert direct == {True, False}  # fewer build rows are worth something
    assert shuffled == {True}
