"""The view of DataFusion's plan format: partition counts, rewriting, and whether the format is the known one."""

from __future__ import annotations

import pytest

from sparkfusion.errors import WireFormatError
from sparkfusion.plan.wire import (
    PlanNode,
    check,
    children,
    copy_of,
    decode,
    encode,
    kind,
    partition_count,
    rewrite,
    walk,
)
from sparkfusion.plan.wire.build import coalesce, hash_repartition, local_limit, union
from tests.unit.plan.plans import NO_BROADCAST, context, plan, shape, tree


@pytest.mark.parametrize(
    "sql",
    [
        "select k from t",
        "select k, sum(v) from t group by k",
        "select k from t union all select k from u",
        "select k, count(*) from t group by k union all select k, count(*) from u group by k",
        "select t.v from t join u on t.k < u.k",
        "select t.v, u.v from t left join u on t.k = u.k order by t.v limit 3",
        "select 1 as one",
        "select 1 as one union all select 2",
        "select k from t where false",
        "select unnest([k, v]) as e from t",
        "select sum(v) over (partition by k) from t",
        "select k from t limit 2 offset 1",
        "select * from generate_series(1, 9)",
    ],
)
@pytest.mark.parametrize("options", [{}, NO_BROADCAST], ids=["broadcast", "shuffle"])
def test_partitions_are_counted_as_datafusion_counts_them(sql: str, options: dict[str, str]) -> None:
    made = context(options)
    executable = made.sql(sql).execution_plan()
    assert partition_count(decode(executable.to_bytes(made))) == executable.partition_count


def test_partition_counts_of_built_nodes() -> None:
    scan = plan("select k from t")
    assert partition_count(coalesce(scan)) == 1
    assert partition_count(local_limit(scan, 5)) == 3
    assert partition_count(hash_repartition(scan, [], 7)) == 7
    assert partition_count(union([scan, coalesce(scan), scan])) == 7
    empty = PlanNode()
    empty.empty.partitions = 4
    assert partition_count(empty) == 4
    assert partition_count(PlanNode()) == 1


def test_unknown_fields_survive_a_rewrite() -> None:
    made = context()
    data = (
        made.sql("select k, sum(v + 1) as s from t where k > 0 group by k order by s").execution_plan().to_bytes(made)
    )
    root = rewrite(decode(data), copy_of)
    assert len(encode(root)) == len(data)
    assert decode(encode(root)) == decode(data)


def test_a_rewrite_sees_children_first_and_changes_in_place() -> None:
    root = plan("select k + 1 as k from t where v > 0")
    seen: list[str] = []

    def wrap_scan(node: PlanNode) -> PlanNode | None:
        seen.append(kind(node))
        return coalesce(node) if kind(node) == "memory_scan" else None

    assert rewrite(root, wrap_scan) is root
    assert seen == ["memory_scan", "filter", "projection"]
    assert shape(root) == tree("""
        projection
          filter
            coalesce_partitions
              memory_scan x3
    """)


def test_children_are_references() -> None:
    root = coalesce(plan("select k from t"))
    children(root)[0].CopyFrom(plan("select 1 as k"))
    assert "memory_scan" not in [kind(node) for node in walk(root)]


def test_other_bytes_are_not_a_plan() -> None:
    with pytest.raises(WireFormatError, match="not a DataFusion plan"):
        decode(b"\xff\xff\xff")


# ---- is it the format we know?


def checked() -> None:
    check.check_wire_format.__wrapped__()


def test_the_installed_format_is_the_known_one() -> None:
    checked()


@pytest.mark.parametrize("version", ["54.0.0", "56.1.0", "56.0.0rc1"])
def test_another_release_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(check, "version", lambda name: version)
    with pytest.raises(WireFormatError, match=f"not that of {version}") as raised:
        checked()
    assert 'pip install "datafusion>=55,<56"' in (raised.value.hint or "")


def test_another_encoding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_QUERY", "select k from t")
    with pytest.raises(WireFormatError, match="in a way that sparkfusion does not know"):
        checked()
