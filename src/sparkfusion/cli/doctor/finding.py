"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparkfusion.errors import SparkfusionError, classify


@dataclass(frozen=True)
class Finding:
    """`wrong` makes queries fail, a `warning` may, a `note` only tells what there is. `remedy` is what mends it."""

    subject: str
    state: Literal["ok", "note", "warning", "wrong"]
    text: str
    remedy: str | None = None


def finding_of(subject: str, error: Exception) -> Finding:
    """An error as something that is wrong."""
    found = error if isinstance(error, SparkfusionError) else classify(error)
    return Finding(subject, "wrong", found.message, found.hint)
