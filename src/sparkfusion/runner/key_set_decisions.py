"""Whether a key set is used: decided when its exact size is known, before the scans start that it reduces.

See docs/adr/0027-key-sets-reduce-large-scans.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.config import ALWAYS
from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.plan.key_sets import drop_key_set
from sparkfusion.plan.stage import Exchange, KeySet, StageGraph
from sparkfusion.runner.join_decisions import MEMORY_PER_BYTE
from sparkfusion.runner.query_state import Policy, QueryState

_MOST_KEPT = 0.3
"""A set with a larger share of all keys is not used: it leaves out too few rows to pay for checking every row's key."""


@dataclass(frozen=True)
class KeySetDecision:
    """What was decided about the key set that a stage computed."""

    stage: StageId
    reason: str
    used: bool


def decide_key_sets(state: QueryState) -> tuple[QueryState, tuple[KeySetDecision, ...]]:
    """Decide every key set that is complete. Nothing that reads it has started: a stage waits for all its inputs."""
    decisions: list[KeySetDecision] = []
    for exchange in state.graph.exchanges:
        producer = state.stage(exchange.producer)
        if exchange.key_set is not None and producer.done and not producer.skipped:
            state, decision = _decide(state, exchange, exchange.key_set)
            decisions.append(decision)
    return state, tuple(decisions)


def refuse_key_set(rows: int, size: int, key_set: KeySet, policy: Policy) -> str | None:
    """Why a key set is not used; None if it is."""
    if policy.key_set_bytes == ALWAYS:
        return None
    if size > policy.key_set_bytes:
        return f"more than sparkfusion.key_set_bytes ({policy.key_set_bytes:,})"
    if size * MEMORY_PER_BYTE > policy.task_memory:
        return f"too much for the memory of a task ({policy.task_memory:,} bytes)"
    if key_set.values is not None and rows > _MOST_KEPT * key_set.values:
        return f"{rows / key_set.values:.0%} of all keys"
    return None


def filters_scans(rows: int, key_set: KeySet, policy: Policy) -> bool:
    """Whether there are few enough keys to be worth checking in scans that only save decoding."""
    return key_set.most is None or rows <= key_set.most or policy.key_set_bytes == ALWAYS


def _is_read(graph: StageGraph, exchange: ExchangeId) -> bool:
    return exchange in graph.head.inputs or any(exchange in stage.inputs for stage in graph.stages)


def _decide(state: QueryState, exchange: Exchange, key_set: KeySet) -> tuple[QueryState, KeySetDecision]:
    manifests = state.manifests(exchange.producer)
    rows, size = sum(each.rows for each in manifests), sum(each.bytes for each in manifests)
    refused = refuse_key_set(rows, size, key_set, state.policy)
    graph = state.graph
    if refused is None and not filters_scans(rows, key_set, state.policy):
        graph = drop_key_set(graph, exchange.id, only_filters=True)
        if not _is_read(graph, exchange.id):
            refused = "too many keys to check while a scan decodes rows"
    if refused is not None:
        graph = drop_key_set(graph, exchange.id)
    found = f"{rows:,} keys ({', '.join(key_set.columns)}), {size:,} bytes"
    filtered = ", which scans check while they decode rows" if rows <= key_set.filtered else ""
    reason = f"key set used: {found}{filtered}" if refused is None else f"key set not used: {found}, {refused}"
    producer = graph.stage(exchange.producer)
    graph = graph.with_stage(replace(producer, decisions=(*producer.decisions, reason)))
    decided = tuple(replace(each, key_set=None) if each.id == exchange.id else each for each in graph.exchanges)
    graph = replace(graph, exchanges=decided)
    return replace(state, graph=graph), KeySetDecision(exchange.producer, reason, refused is None)
