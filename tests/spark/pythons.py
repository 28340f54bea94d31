"""Other Pythons for Spark's workers: this one, but with packages left out or replaced."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

SITE_PACKAGES = Path(pyspark.__file__).parents[1]


def python_with(directory: Path, *, without: tuple[str, ...] = (), files: Mapping[str, str] | None = None) -> Path:
    """A command that starts this Python with the installed packages, except those whose entries begin like these.

    It sees no sparkfusion either, where that is installed as a link to its sources: `site` is not run, which would
    follow it.

    Args:
        files: more files beside the packages, by their paths.
    """
    packages = directory / "packages"
    packages.mkdir(parents=True)
    for entry in SITE_PACKAGES.iterdir():
        if not entry.name.startswith(("sparkfusion", *without)):
            (packages / entry.name).symlink_to(entry)
    for name, text in (files or {}).items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    command = directory / "python"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    command.chmod(0o755)
    return command


def metadata(package: str, version: str) -> dict[str, str]:
    """The file by which an installed package tells its version."""
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    return {f"{package}-{version}.dist-info/METADATA": text}
