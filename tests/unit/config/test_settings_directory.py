"""The directory of `sparkfusion.store_dir`."""

from __future__ import annotations

import pytest

from sparkfusion.config import Settings


@pytest.mark.parametrize(
    ("given", "directory"),
    [
        ("", ""),
        ("frames", "frames"),
        ("/mnt/100%20 frames", "/mnt/100%20 frames"),
        ("file:///mnt/my%20frames", "/mnt/my frames"),
        ("FILE:///mnt/frames", "/mnt/frames"),
        ("s3://bucket/frames", ""),
    ],
)
def test_store_dir_is_a_directory_of_this_machine(given: str, directory: str) -> None:
    assert Settings({"sparkfusion.store_dir": given}).directory() == directory
