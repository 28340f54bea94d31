"""Defaults of sessions that differ from DataFusion's, because of defects of its current release.

`docs/upstream-defects.md` lists all that sparkfusion guards against. A user who sets one of these options gets it.
"""

from __future__ import annotations

from collections.abc import Mapping

DYNAMIC_FILTERS = "datafusion.optimizer.enable_dynamic_filter_pushdown"
"""Setting or resetting it sets other options too, those below among them."""

GUARDED_DEFAULTS: Mapping[str, str] = {
    # datafusion#24816: min(a), min(b + 1) prune by `a` alone, and drop the rows that `b + 1` needs
    "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown": "false",
    # datafusion#25244, #25262, #25264: a filter on the second of two columns of one name is applied to the first
    "datafusion.optimizer.enable_join_dynamic_filter_pushdown": "false",
}


def guards_of(name: str) -> Mapping[str, str]:
    """The options to set again after this one was reset."""
    if name == DYNAMIC_FILTERS:
        return GUARDED_DEFAULTS
    return {name: GUARDED_DEFAULTS[name]} if name in GUARDED_DEFAULTS else {}


def in_setting_order(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the one first that changes others, so that setting them one by one gives what they say."""
    first = {DYNAMIC_FILTERS: options[DYNAMIC_FILTERS]} if DYNAMIC_FILTERS in options else {}
    return first | dict(options)
