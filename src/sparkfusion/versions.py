"""Check which versions may work together, with one rule for Flight workers and for Spark's executors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

Environment = Mapping[str, str]
"""The environment of a process: its `host`, and the version of every package that has to match, or `missing`."""

MISSING = "missing"
OLDEST_PROTOBUF = (5, 29)
"""The version that wire_pb2.py was generated for; any later runtime reads it."""


@dataclass(frozen=True)
class Misfit:
    """A package whose version in another process does not match that in this process."""

    package: str
    there: str
    here: str


def find_misfits(here: Environment, there: Environment) -> list[Misfit]:
    """The packages of another process that do not match. `host` is not a package and is ignored.

    >>> find_misfits({"pyarrow": "24.0.0", "python": "3.11"}, {"pyarrow": "24.1.0", "python": "3.12"})
    [Misfit(package='python', there='3.12', here='3.11')]
    """
    pairs = [Misfit(package, there.get(package, MISSING), version) for package, version in here.items()]
    return [it for it in pairs if it.package != "host" and not _fits(it)]


def _fits(it: Misfit) -> bool:
    """Whether two versions match. Packages that decode plans and that pickle must be equal.

    Arrow's frames are the same in all versions, but its types are pickled inside functions, so its major version must
    be equal.
    """
    if it.there == it.here or not it.there[:1].isdigit():  # "missing", or the reason why it cannot be imported
        return it.there == it.here
    if it.package in ("pyarrow", "cloudpickle"):
        return it.there.split(".")[0] == it.here.split(".")[0]
    if it.package == "protobuf":
        return tuple(int(number) for number in re.findall(r"\d+", it.there)[:2]) >= OLDEST_PROTOBUF
    return False


@cache
def describe_environment() -> Environment:
    """The environment of this process."""
    return next(iter(reporter()([0])))


def reporter() -> Callable[[Iterable[int]], Iterator[dict[str, str]]]:
    """A function that reports what is installed where it runs.

    It must run where sparkfusion is not installed. Because it is local to another function and uses nothing of this
    module, it is pickled with its code and not by its name. It imports the packages, because an installed package may
    still fail to load, and tasks will need them anyway. It does not import sparkfusion: a shipped package cannot
    replace a module that a worker has already imported.
    """

    def report(numbers: Iterable[int]) -> Iterator[dict[str, str]]:
        import importlib
        import importlib.metadata
        import importlib.util
        import platform

        def version(package: str, module: str) -> str:
            try:
                spec = importlib.util.find_spec(module)
                if spec is None or spec.origin is None:  # a directory that happens to have this name
                    return "missing"
                loaded = importlib.import_module(module) if package != "sparkfusion" else None
            except ModuleNotFoundError as error:
                return "missing" if module.startswith(f"{error.name}") else f"without {error.name}"
            except Exception as error:
                return f"does not load: {error}".splitlines()[0]
            try:
                return importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                return str(getattr(loaded, "__version__", "of an unknown version"))

        list(numbers)  # a task that does not read its input loses its worker
        yield {
            "host": platform.node(),
            "python": ".".join(platform.python_version_tuple()[:2]),
            "datafusion": version("datafusion", "datafusion"),
            "pyarrow": version("pyarrow", "pyarrow"),
            "protobuf": version("protobuf", "google.protobuf"),
            "cloudpickle": version("cloudpickle", "cloudpickle"),
            "sparkfusion": version("sparkfusion", "sparkfusion"),
        }

    return report
