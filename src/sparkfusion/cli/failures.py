"""The messages for statements that fail or are cancelled."""

from __future__ import annotations

import click

from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError, classify


def is_cancellation(error: BaseException) -> bool:
    """Whether an error means Ctrl-C. While DataFusion plans, Ctrl-C raises a SystemError whose cause is the
    KeyboardInterrupt."""
    seen: list[BaseException] = []  # `raise error from error` makes a cycle
    found: BaseException | None = error
    while found is not None and found not in seen:
        if isinstance(found, KeyboardInterrupt | QueryCancelledError | click.Abort):
            return True
        seen.append(found)
        found = found.__cause__ or found.__context__
    return False


def explain_failure(error: BaseException) -> str:
    """The message for an error: what happened, why, and what to do; without a traceback."""
    found = error if isinstance(error, SparkfusionError) else classify(error)
    text = "\n  ".join([str(found), *getattr(error, "__notes__", ())])
    if isinstance(found, InternalError) and found.hint is None:
        text += "\n  hint: --debug shows where this happened"
    return text
