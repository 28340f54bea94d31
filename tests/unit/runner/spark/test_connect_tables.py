"""How the files of a registered DataFrame are divided among the parts of its table."""

from __future__ import annotations

import pytest

from sparkfusion.errors import InternalError
from sparkfusion.runner.spark.connect.connect_tables import _spread
from sparkfusion.runner.spark.connect.part_files import WrittenPart


def written(*partitions: int) -> list[WrittenPart]:
    return [WrittenPart(partition, f"{partition}.arrow", 10) for partition in partitions]


@pytest.mark.parametrize(
    ("files", "parts"),
    [(written(), []), (written(3), [0]), (written(5, 0), [0, 8]), (written(*range(16)), list(range(16)))],
    ids=["none", "one", "two", "as many as parts"],
)
def test_files_are_spread_over_the_parts(files: list[WrittenPart], parts: list[int]) -> None:
    found = _spread(7, files, 16)
    assert [each.part for each in found] == parts
    assert [each.file.path for each in found] == [
        f"{each.partition}.arrow" for each in sorted(files, key=lambda f: f.partition)
    ]


def test_a_file_without_a_part_would_lose_rows() -> None:
    with pytest.raises(InternalError, match="16 parts was written to 17 files"):
        _spread(7, written(*range(17)), 16)
