"""A small virtual environment as an archive, as `docs/deploy.md` says to make one."""

from __future__ import annotations

import shutil
import venv
from importlib.metadata import distribution
from pathlib import Path

import venv_pack

PACKAGES = ("cloudpickle", "datafusion", "protobuf", "pyarrow", "typing_extensions", "urllib3")
"""What sparkfusion needs. Not sparkfusion itself, which the driver sends, nor PySpark, which comes with Spark."""

_LEFT_OUT = {"..", "__pycache__", "include", "tests"}


def pack_environment(directory: Path) -> Path:
    """Pack the installed versions of the packages. They are copied, so that no network is needed."""
    made = directory / "environment"
    venv.create(made, symlinks=True, with_pip=False)
    (site,) = made.glob("lib/python*/site-packages")
    for package in PACKAGES:
        for file in distribution(package).files or ():
            if not _LEFT_OUT.intersection(file.parts):
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(file.locate()), target)
    packed = directory / "environment.tar.gz"
    venv_pack.pack(prefix=str(made), output=str(packed), compress_level=1)
    shutil.rmtree(made)
    return packed
