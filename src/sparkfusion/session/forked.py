"""Sessions do not survive a fork: DataFusion's threads stay with the parent, and a query in the child would hang."""

from __future__ import annotations

import os

from sparkfusion.errors import UserError


class _Process:
    """What this process has done, and what it inherited."""

    used = False
    forked_after_use = False


def check_not_forked() -> None:
    """Refuse to work in a process that was forked from one with a session. Called before every use of DataFusion."""
    if _Process.forked_after_use:
        raise UserError(
            "this process was forked from one that had opened a session, and DataFusion does not work after a fork",
            hint="start processes with multiprocessing.get_context('spawn'), or open the first session after the fork",
        )
    _Process.used = True


def _note_fork() -> None:
    _Process.forked_after_use = _Process.used


os.register_at_fork(after_in_child=_note_fork)
