"""Tables of links have exactly the files that they were made of, as long as something reads them."""

from __future__ import annotations

import gc
import tempfile
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import col, lit

from sparkfusion.errors import UserError
from sparkfusion.runner.base import CatalogFile
from sparkfusion.session.linked_files import LinkedFiles

SCHEMA = pa.schema([("n", pa.int64()), ("Day", pa.date32()), ("p", pa.int32())])


def files(directory: Path) -> list[CatalogFile]:
    values = (("2020-02-03", "1"), ("2020-02-04", None), (None, "-7"))
    made = []
    for number, each in enumerate(values):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table({"n": [number, number + 10]}), path)
        made.append(CatalogFile(str(path), each))
    return made


def homes() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("sparkfusion-*-linked-files-*/*"))


def test_rows_have_the_values_of_their_partitions(tmp_path: Path) -> None:
    links = LinkedFiles()
    made = files(tmp_path)
    dataframe = links.read("db.t", made, SCHEMA, ("Day", "p"))
    assert dataframe.schema() == SCHEMA
    pruned = dataframe.filter(col("p") == lit(-7))
    assert pruned.to_pylist() == [{"n": 2, "Day": None, "p": -7}, {"n": 12, "Day": None, "p": -7}]
    assert pruned.execution_plan().display_indent().count(".parquet") == 1
    assert links.describe(pruned) == ["table db.t: 3 Parquet files, read by DataFusion"]
    pq.write_table(pa.table({"n": [99]}), tmp_path / "later.parquet")
    assert dataframe.count() == 6
    Path(made[0].path).unlink()
    with pytest.raises(UserError, match=r"files of table 'db\.t' were deleted"):
        links.check(dataframe)
    links.close()


def test_partition_columns_may_be_anywhere(tmp_path: Path) -> None:
    links = LinkedFiles()
    schema = pa.schema([SCHEMA.field("p"), SCHEMA.field("n"), SCHEMA.field("Day")])
    dataframe = links.read("t", files(tmp_path), schema, ("Day", "p"), "version 7 of a Delta table")
    assert dataframe.schema() == schema
    assert dataframe.filter(col("n") == lit(11)).to_pylist() == [{"p": None, "n": 11, "Day": date(2020, 2, 4)}]
    shown = links.describe(dataframe)
    assert shown == ["table t: 3 Parquet files of version 7 of a Delta table, read by DataFusion"]
    links.close()


def test_links_go_with_the_last_dataframe(tmp_path: Path) -> None:
    links = LinkedFiles()
    dataframe = links.read("t", files(tmp_path), SCHEMA, ("Day", "p"))
    derived = dataframe.select("n")
    (home,) = [home for home in homes() if home.name == "1"]
    del dataframe
    gc.collect()
    assert home.exists()
    del derived
    gc.collect()
    assert not home.exists()
    links.close()
