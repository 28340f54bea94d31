"""The command line. Needs the `cli` extra; importing this module does not."""

from __future__ import annotations

import sys

from sparkfusion.cli.ending import CANCELLED, Ending
from sparkfusion.cli.streams import open_closed_streams


def main() -> int:
    """Entry point of the `sparkfusion` script; returns its exit code, with which the process then ends."""
    ending = Ending()
    open_closed_streams()
    try:
        ending.status = _run(ending)
    except KeyboardInterrupt:
        print("sparkfusion: cancelled", file=sys.stderr)
        ending.status = CANCELLED
    return ending.status


def _run(ending: Ending) -> int:
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as missing:
        print(
            f"sparkfusion: the command line needs the package {missing.name!r}\n  hint: pip install 'sparkfusion[cli]'",
            file=sys.stderr,
        )
        return 2
    from sparkfusion.cli.app import run

    ending.start()
    code = run(ending)
    sys.stdout.flush()
    sys.stderr.flush()
    return code
