"""Plan rewrites of somebody else's, each asked for by one of the coordinator's `extensions`. Tests install a copy."""

from __future__ import annotations

import sys

from sparkfusion.errors import UserError
from sparkfusion.worker.server.rewrites import RewriteContext


def swap(plan: bytes, context: RewriteContext) -> bytes:
    """`{"swap": "house=mouse"}`: another word of the same length."""
    before, _, after = context.extensions.get("swap", "").partition("=")
    return plan.replace(before.encode(), after.encode()) if before else plan


def trace(plan: bytes, context: RewriteContext) -> bytes:
    """`{"trace": "/a/file"}`: a line for each task."""
    file = context.extensions.get("trace")
    if file is not None:
        with open(file, "a") as lines:
            lines.write(f"{context.key}\n")
    return plan


def gate(plan: bytes, context: RewriteContext) -> bytes:
    """`{"tenant": "red"}`: refused."""
    if context.extensions.get("tenant") == "red":
        raise UserError("tenant red is not served here", hint="ask the office")
    return plan


def stumble(plan: bytes, context: RewriteContext) -> bytes:
    """`{"stumble": "raise"}`, `"exit"`, `"nothing"` or `"nonsense"`: a mistake of the extension's."""
    how = context.extensions.get("stumble")
    if how == "raise":
        raise ValueError("the policy has no page 7")
    if how == "exit":
        sys.exit(3)
    if how == "away":
        raise ConnectionError("the policy server is away")
    answers = {"nothing": None, "nonsense": b"no plan"}
    return answers.get(how or "", plan)  # type: ignore[return-value]
