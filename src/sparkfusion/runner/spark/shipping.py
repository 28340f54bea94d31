"""The installed sparkfusion as a zip, which Spark sends to executors that lack it."""

from __future__ import annotations

import sys
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from sparkfusion.exchange.owned import OwnedDirectory

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKAGE = "sparkfusion"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_shipped: weakref.WeakKeyDictionary[SparkContext, OwnedDirectory] = weakref.WeakKeyDictionary()


def ship_package(spark: SparkContext) -> None:
    """Add the package to every task of a context from now on, also on executors that come later. Done once.

    Executors fetch the file when they get their first task, so it stays as long as the context.
    """
    if spark in _shipped:
        return
    from pyspark import SparkFiles

    home = OwnedDirectory("package", Path(tempfile.gettempdir()))
    made = build_zip(home.path)
    spark.addPyFile(str(made))
    with suppress(ValueError):  # Spark puts it on the driver's path as well, which has the package
        sys.path.remove(str(Path(SparkFiles.getRootDirectory(), made.name)))
    _shipped[spark] = home


def build_zip(directory: Path) -> Path:
    """Zip the sources of the package that runs here, and enough metadata for `importlib.metadata.version`."""
    number = version(_PACKAGE)
    made = directory / f"{_PACKAGE}-{number}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for name, source in _sources(files(_PACKAGE), _PACKAGE):
            _add(target, name, source.read_bytes())
        metadata = f"Metadata-Version: 2.1\nName: {_PACKAGE}\nVersion: {number}\n"
        _add(target, f"{_PACKAGE}-{number}.dist-info/METADATA", metadata.encode())
    return made


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    """The source files of the package, which may be a zip: a driver may itself run from a shipped package."""
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir() and entry.name != "__pycache__" and not entry.name.startswith("."):
            yield from _sources(entry, f"{path}/{entry.name}")
        elif entry.name.endswith((".py", ".pyi", ".typed")):
            yield f"{path}/{entry.name}", entry


def _add(target: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file with a fixed time, so that the same sources make the same zip."""
    target.writestr(zipfile.ZipInfo(name, _LONG_AGO), data, zipfile.ZIP_DEFLATED)
