from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Invoke

FORCED = ("--set", "sparkfusion.bytes_per_partition=1", "--partitions", "3")
GROUPED = "select part, count(*) as n from items group by part"


def test_text_shows_the_stages(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, *FORCED)
    assert result.exit_code == 0, result.output
    assert "stage" in result.stdout.lower()
    assert "shuffle" in result.stdout.lower()


def test_json_is_json(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, "--format", "json", *FORCED)
    assert result.exit_code == 0, result.output
    assert "stages" in json.dumps(json.loads(result.stdout))


def test_dot_is_a_graph(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, "--format", "dot", *FORCED)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digraph")
    assert result.stdout.rstrip().endswith("}")


def test_analyze_runs_the_query(invoke: Invoke, items: str) -> None:
    plain = invoke("explain", "-c", GROUPED, "-t", items, *FORCED)
    analyzed = invoke("explain", "--analyze", "-c", GROUPED, "-t", items, *FORCED)
    assert analyzed.exit_code == 0, analyzed.output
    assert "rows" in analyzed.stdout
    assert analyzed.stdout != plain.stdout


def test_the_reason_of_a_single_node_query_is_shown(invoke: Invoke) -> None:
    recursive = "with recursive n as (select 1 as i union all select i + 1 from n where i < 3) select * from n"
    result = invoke("explain", "-c", recursive)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("not distributed: ")


@pytest.mark.parametrize("arguments", [(), ("-c", "select 1", "--format", "svg")])
def test_usage_errors(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    assert invoke("explain", *arguments).exit_code == 2
