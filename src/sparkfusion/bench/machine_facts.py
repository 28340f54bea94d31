"""Facts about the machine and the software, without which times cannot be judged."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sparkfusion.config import available_cores, machine_memory

PACKAGES = ("sparkfusion", "datafusion", "pyspark", "pyarrow")


def machine_facts(packages: Iterable[str] = PACKAGES) -> dict[str, Any]:
    """The date, this machine, and the versions of Python and of these packages."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": available_cores(),
        "memory_bytes": machine_memory(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {"python": platform.python_version(), **installed_versions(packages)},
    }


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that this Python has."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
