"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparkfusion.errors import SparkfusionError, classify


@dataclass(frozen=True)
class Finding:
    """The result of a check. `wrong` makes queries fail, a `warning` may, a `note` is only information. `remedy` says
    how to fix it."""

    subject: str
    state: Literal["ok", "note", "warning", "wrong"]
    text: str
    remedy: str | None = None


def finding_of(subject: str, error: Exception) -> Finding:
    """The finding for an error, as `wrong`."""
    found = error if isinstance(error, SparkfusionError) else classify(error)
    return Finding(subject, "wrong", found.message, found.hint)
