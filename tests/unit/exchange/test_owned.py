"""Directories that belong to a process go away with it, whatever was left of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sparkfusion.exchange.owned import DIRECTORY_PREFIX, LOCK, OwnedDirectory, remove_orphans


def set_back(path: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def test_a_directory_of_somebody_alive_stays(tmp_path: Path) -> None:
    owned = OwnedDirectory("q", tmp_path)
    set_back(owned.path, 48)
    remove_orphans(tmp_path)
    assert (owned.path / LOCK).exists()
    owned.close()
    assert not owned.path.exists()


def test_a_directory_whose_owner_is_gone_goes(tmp_path: Path) -> None:
    left = tmp_path / f"{DIRECTORY_PREFIX}1-q-x"
    left.mkdir()
    (left / LOCK).touch()
    (left / "frames").write_text("rows")
    remove_orphans(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize(
    ("name", "hours", "stays"),
    [
        (f"{DIRECTORY_PREFIX}1-q-x", 2, False),
        (f"{DIRECTORY_PREFIX}1-q-x", 0, True),
        (f"{DIRECTORY_PREFIX}reproducers", 48, True),
    ],
    ids=["half removed long ago", "just being made", "not ours to remove"],
)
def test_a_directory_without_a_lock(tmp_path: Path, name: str, hours: float, stays: bool) -> None:
    left = tmp_path / name
    left.mkdir()
    (left / "frames").write_text("rows")
    set_back(left, hours)
    remove_orphans(tmp_path)
    assert left.exists() is stays
