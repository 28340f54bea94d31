"""Judge whether a leg's answer is right: by plain comparison, and only if that fails by limits and non-determinism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from datafusion import LogicalPlan, SessionContext

from sparkfusion.verify.compare import Comparison, compare_tables
from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.declared_order import DeclaredSortOrder, declared_order, order_violation
from sparkfusion.verify.limits import LimitChoice, LimitNode, compare_limited, limit_choice, outermost_limit
from sparkfusion.verify.several_answers import reason_in_answers, reason_in_plan


@dataclass(frozen=True)
class Verdict:
    """The judgement of an answer. `undecided` is the reason if it cannot be decided whether the answer is right."""

    comparison: Comparison
    undecided: str | None = None

    @property
    def right(self) -> bool:
        return self.comparison.equal


@dataclass(frozen=True)
class Judge:
    """Judges answers of one query against its single-node answer. Facts about the query are cached.

    `view` makes the rows of both sides comparable, if answers come from an engine with other types.
    """

    reference: pa.Table
    plan: LogicalPlan
    context: SessionContext
    options: CompareOptions
    settings: Callable[[], Mapping[str, str]] = dict
    view: Callable[[pa.Table], pa.Table] = lambda table: table

    def judge(self, answer: pa.Table) -> Verdict:
        order = self._order
        answer = self.view(answer)
        comparison = compare_tables(self.view(self.reference), answer, self.options, order.keys)
        comparison = replace(comparison, notes=(*comparison.notes, *order.notes()))
        if comparison.equal or comparison.has("schema", "order"):
            return Verdict(comparison)  # an answer in the wrong order is wrong in any case
        if self._freedom is not None:
            return Verdict(comparison, self._freedom)
        if self._limit is not None:
            comparison = self._judge_limited(answer, comparison)
            if comparison.equal:
                return Verdict(comparison)
        return Verdict(comparison, self._instability)

    @cached_property
    def _order(self) -> DeclaredSortOrder:
        try:
            order = declared_order(self.plan, self.reference)
        except Exception as error:  # a plan node that the Python API does not show
            return DeclaredSortOrder(unchecked=(f"(plan not readable: {error})",))
        if order_violation(self.reference, order.keys) is not None:
            return DeclaredSortOrder(unchecked=tuple(f"{key} (not kept on a single node)" for key in order.keys))
        return order

    @cached_property
    def _freedom(self) -> str | None:
        try:
            return reason_in_plan(self.plan, self.context, self.options)
        except Exception as error:
            return f"the plan cannot be searched for non-determinism: {error}"

    @cached_property
    def _limit(self) -> LimitNode | None:
        return outermost_limit(self.plan)

    @cached_property
    def _choice(self) -> LimitChoice:
        assert self._limit is not None
        choice = limit_choice(self._limit, self.context, self.options)
        return LimitChoice(self.view(choice.must), self.view(choice.may))

    def _judge_limited(self, answer: pa.Table, plain: Comparison) -> Comparison:
        try:
            choice = self._choice
        except Exception as error:
            return replace(plain, notes=(*plain.notes, f"the LIMIT's ties could not be examined: {error}"))
        limited = compare_limited(choice, answer, self.reference.num_rows, self.options)
        return replace(limited, notes=(*limited.notes, *plain.notes))

    @cached_property
    def _instability(self) -> str | None:
        if self._limit is None:
            return reason_in_answers(self.plan, self.settings(), self.reference, self.options)
        return reason_in_answers(self._limit.input, self.settings(), None, self.options)
