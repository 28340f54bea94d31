"""Sail's Python environment: Sail speaks the protocol of Spark 4.1, and its client must not meet our PySpark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).parents[2] / ".venv-sail"
REQUIREMENTS = ("pysail>=0.7,<0.8", "pyspark-client>=4.1,<4.2", "pandas>=2.2,<3")
PROCESSES = frozenset({"sail", "sail-cluster"})


def prepare_sail() -> Path:
    """The Python of the environment, which is made once, from PyPI. Raises `OSError` if that fails."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / "installed.txt"
    wanted = "\n".join(REQUIREMENTS)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(f"installing {', '.join(REQUIREMENTS)} in {ENVIRONMENT} …", flush=True)
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
        subprocess.run(install, check=True)
    except subprocess.CalledProcessError as error:
        raise OSError(f"Sail could not be installed: {error}") from error
    stamp.write_text(wanted)
    return python
