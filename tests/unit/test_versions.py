"""Which versions fit together, on workers and on executors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkfusion.versions import MISSING, Misfit, describe_environment, find_misfits
from sparkfusion.worker.server.version import difference, this_version

HERE = dict(describe_environment())
FIELDS = {"sparkfusion": "version"}
"""Fields of what a worker tells that are not named like the package."""


def test_everything_that_a_task_needs_is_asked_for() -> None:
    assert list(HERE) == ["host", "python", "datafusion", "pyarrow", "protobuf", "cloudpickle", "sparkfusion"]
    assert all(value[0].isdigit() for name, value in HERE.items() if name != "host")


@pytest.mark.parametrize(
    ("package", "there", "fits"),
    [
        ("python", "3.10", False),
        ("datafusion", f"{HERE['datafusion']}.post1", False),
        ("sparkfusion", "0.0.9", False),
        ("pyarrow", HERE["pyarrow"].split(".")[0] + ".99.99", True),
        ("pyarrow", "11.0.0", False),
        ("cloudpickle", HERE["cloudpickle"].split(".")[0] + ".99", True),
        ("cloudpickle", "2.2.1", False),
        ("protobuf", "5.29.0", True),
        ("protobuf", "6.33.1", True),
        ("protobuf", "5.28.3", False),
        ("protobuf", "4.25.1", False),
        *((package, MISSING, False) for package in ("datafusion", "pyarrow", "protobuf", "cloudpickle", "sparkfusion")),
        ("pyarrow", "does not load: no libarrow", False),
    ],
)
def test_the_rule_is_the_same_for_executors_and_workers(package: str, there: str, fits: bool) -> None:
    assert find_misfits(HERE, HERE) == []
    wrong = find_misfits(HERE, {**HERE, "host": "node-7", package: there})
    assert wrong == ([] if fits else [Misfit(package, there, HERE[package])])
    told: dict[str, Any] = {FIELDS.get(package, package): there}
    words = f"{package} {there} instead of {HERE[package]}"
    assert difference(replace(this_version(99), host="node-7", **told)) == (None if fits else words)


def test_a_worker_that_does_not_tell_all_its_versions_is_not_used() -> None:
    assert difference(replace(this_version(), pyarrow=None)) == (
        f"pyarrow of an unknown version instead of {HERE['pyarrow']}"
    )
