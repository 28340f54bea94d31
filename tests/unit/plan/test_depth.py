"""How deep a plan is, measured before anything decodes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.plan.wire.depth import MOST_LEVELS, check_depth


def field(number: int, content: bytes) -> bytes:
    def varint(value: int) -> bytes:
        return bytes([value & 127 | 128]) + varint(value >> 7) if value >> 7 else bytes([value])

    return varint(number << 3 | 2) + varint(len(content)) + content


COLUMN = field(1, field(1, b"k"))


def nested_nodes(count: int) -> bytes:
    plan = b""
    for _ in range(count):
        plan = field(32, field(1, plan))
    return plan


def filtered_by(expr: bytes) -> bytes:
    return field(12, field(1, b"") + field(2, expr))


def chain(count: int) -> bytes:
    return filtered_by(field(3, field(3, b"And") + field(4, COLUMN) * count))


def chains_in_chains(count: int) -> bytes:
    expr = COLUMN
    for _ in range(count // 10):
        expr = field(3, field(3, b"And") + field(4, expr) + field(4, COLUMN) * 9)
    return filtered_by(expr)


def nested_types(count: int) -> bytes:
    kind = field(10, b"")
    for _ in range(count):
        kind = field(25, field(1, field(2, kind)))
    return field(3, field(1, field(1, field(2, kind))))


@pytest.mark.parametrize(
    ("make", "fine", "deep"),
    [
        (nested_nodes, 45, 55),
        (chain, MOST_LEVELS - 20, MOST_LEVELS + 1),
        (chains_in_chains, MOST_LEVELS - 40, MOST_LEVELS + 40),
        (nested_types, 25, 40),
        (nested_nodes, 0, 3_000),
        (chain, 2, 50_000),
    ],
)
def test_depth_is_bounded(make: Callable[[int], bytes], fine: int, deep: int) -> None:
    check_depth(make(fine))
    with pytest.raises(PlanTooDeepError, match="too deep"):
        check_depth(make(deep))
