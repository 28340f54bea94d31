"""Which store a query on Spark uses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sparkfusion.config import Settings
from sparkfusion.errors import UserError
from sparkfusion.runner.spark.choice import choose_store

LOCAL, CLUSTER = "local[4]", "spark://head:7077"


def chosen(master: str, store: str = "auto", directory: str = "") -> Any:
    settings = Settings({"sparkfusion.store": store, "sparkfusion.store_dir": directory})
    return choose_store(settings, SimpleNamespace(master=master))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "store", "directory", "kind"),
    [
        (LOCAL, "auto", "", "local"),
        (LOCAL, "auto", "/x", "local"),
        (LOCAL, "shared", "/x", "shared"),
        (LOCAL, "spark", "", "spark"),
        (CLUSTER, "auto", "", "spark"),
        (CLUSTER, "auto", "/x", "shared"),
        (CLUSTER, "spark", "/x", "spark"),
        ("local-cluster[2,1,1024]", "auto", "", "spark"),
    ],
)
def test_the_store_fits_the_master(master: str, store: str, directory: str, kind: str) -> None:
    assert chosen(master, store, directory).kind == kind


def test_a_local_store_cannot_serve_a_cluster() -> None:
    with pytest.raises(UserError, match="executors of spark://head:7077 are on other machines") as caught:
        chosen(CLUSTER, "local")
    assert "sparkfusion.store to spark" in str(caught.value.hint)


def test_a_shared_store_needs_a_place() -> None:
    with pytest.raises(UserError, match="store_dir is not set"):
        chosen(CLUSTER, "shared")


@pytest.mark.parametrize(
    ("store", "directory", "words"),
    [
        ("local", "", "frames in memory, then on this machine's disk"),
        ("local", "/x", "frames in /x"),
        ("shared", "/x", "frames in /x, shared by all executors"),
        ("spark", "", "frames in Spark's shuffle"),
    ],
)
def test_the_store_says_what_it_is(store: str, directory: str, words: str) -> None:
    assert str(chosen(LOCAL, store, directory)) == words
