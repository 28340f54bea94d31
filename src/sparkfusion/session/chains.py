"""How long the chains of operators in SQL text are: `a + b + c + …` is parsed to a tree as deep as the chain is long.

DataFusion walks such a tree recursively, and a thread whose stack is too small for it ends the whole process. Measured
with DataFusion 55 on a thread with the usual 8 MiB: 7,000 operators of an expression and 3,000 UNIONs work; 9,000
operators and 4,000 UNIONs crash. DataFusion limits the nesting of parentheses (`sql_parser.recursion_limit`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.plan.wire.depth import MOST_LEVELS
from sparkfusion.session.sql_text import mask
from sparkfusion.session.stacks import has_roomy_stacks

MOST_OPERATORS = 5_000
MOST_ON_SMALL_STACKS = 2_000  # threads with 2 MiB ran 2,800 ANDs over rows in memory, and crashed at 3,000
MOST_UNIONS = 2_000
_CONNECTED = re.compile(r"\n| AND | OR ")
_LEAST_CHARACTERS = 2  # of an operator with an operand

_TOKEN = re.compile(
    r"""
      (?P<open> \( ) | (?P<close> \) )
    | (?P<combine> \b(?:UNION|INTERSECT|EXCEPT)\b )
    | (?P<connect> \b(?:AND|OR|XOR)\b )
    | (?P<end> [,;] | \b(?:SELECT|FROM|WHERE|GROUP|HAVING|ORDER|WINDOW|LIMIT|JOIN|ON|VALUES|SET)\b
                    | \b(?:CASE|WHEN|THEN|ELSE|END)\b )
    | (?P<compare> [<>=!~]+ | \b(?:LIKE|ILIKE|IN|IS|BETWEEN)\b )
    | (?P<compute> \|+ | [-+*/%&^\#] )
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass
class _Level:
    """What was found inside one pair of parentheses."""

    unions: int = 0
    connected: int = 0
    computed: int = 0
    longest_connected: int = 0
    longest_computed: int = 0
    inner: int = 0

    def read(self, kind: str) -> None:
        if kind == "combine":
            self.unions += 1
        if kind in ("combine", "end"):
            self.connected = 0
        if kind != "compute":
            self.computed = 0
        self.connected += kind == "connect"
        self.computed += kind == "compute"
        self.longest_connected = max(self.longest_connected, self.connected)
        self.longest_computed = max(self.longest_computed, self.computed)

    @property
    def operators(self) -> int:
        return self.longest_connected + self.longest_computed + self.inner


def longest_chains(sql: str) -> tuple[int, int]:
    """How many operators a chain in this text has at most, and how many UNIONs.

    >>> longest_chains("select a + b - c from t where x = 1 or y = -2 or (z > 3 and not w)")
    (5, 0)
    >>> longest_chains("select '+ + +', 1, 2 union all select 3, 4 union all select 5, 6")
    (0, 2)
    """
    levels, unions = [_Level()], 0
    for found in _TOKEN.finditer(mask(sql)):
        kind = found.lastgroup or ""
        if kind == "open":
            levels.append(_Level())
        elif kind == "close" and len(levels) > 1:
            closed = levels.pop()
            levels[-1].inner = max(levels[-1].inner, closed.operators)
            unions = max(unions, closed.unions)
        elif kind != "close":
            levels[-1].read(kind)
    return sum(level.operators for level in levels), max(unions, *(level.unions for level in levels))


def computes_long_chain(plan_text: str) -> bool:
    """Whether a logical plan, as DataFusion prints it, computes a chain that is too deep to be decoded in a task.

    Chains of AND and OR do not count: DataFusion often turns them into lists, or into several filters, when it
    optimizes.
    """
    if plan_text.count(" ") <= MOST_LEVELS:
        return False
    return longest_chains(_CONNECTED.sub(",", plan_text))[0] > MOST_LEVELS


def check_chains(sql: str) -> None:
    """Raise `PlanTooDeepError` for text that DataFusion cannot plan without the risk of ending this process."""
    most = MOST_OPERATORS if has_roomy_stacks() else MOST_ON_SMALL_STACKS
    if len(sql) < _LEAST_CHARACTERS * min(most, MOST_UNIONS):
        return
    operators, unions = longest_chains(sql)
    if operators > most:
        raise PlanTooDeepError(
            f"the query has a chain of about {operators:,} operators, such as + or AND, and more than {most:,} would "
            "overflow DataFusion's stack",
            hint="compare with IN (…) instead of many ORs, join with a table of the values, or compute in steps",
        )
    if unions > MOST_UNIONS:
        raise PlanTooDeepError(
            f"the query combines {unions + 1:,} queries by UNION, and more than {MOST_UNIONS:,} would overflow "
            "DataFusion's stack",
            hint="read many files as one table, list rows as VALUES, or write parts of the union to one directory",
        )
