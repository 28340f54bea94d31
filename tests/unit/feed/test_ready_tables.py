"""Iceberg and Delta tables as feeds: their files, pruned by their planning; what plain scans cannot read is refused."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import FeedContext, Session, UserError
from sparkfusion.feed.ready.bounds import may_hold
from sparkfusion.feed.ready.plain_files import NotPlainFilesError
from sparkfusion.feeds import DeltaFiles, IcebergFiles, RowGroups
from tests.suites.delta_logs import VECTOR, write_log
from tests.suites.hidden_package import hide_package
from tests.suites.iceberg_tables import iceberg_catalog

DAY = datetime.date(2024, 1, 1)


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as opened:
        yield opened


def part(number: int) -> pa.Table:
    values = range(number * 10, number * 10 + 10)
    return pa.table(
        {
            "v": pa.array(values, pa.int64()),
            "region": [f"r {value % 2}/%" for value in values],
            "day": pa.array([DAY + datetime.timedelta(days=number)] * 10, pa.date32()),
            "tags": [[f"t{value}"] for value in values],
        }
    )


def rows(session: Session, query: str) -> list[dict[str, Any]]:
    return session.sql(query).to_pylist()


class Counted:
    """Registers a feed and tells how many units its queries got."""

    def __init__(self, session: Session, provider: Any) -> None:
        self.units = 0
        inner = provider.feed

        def feed(partition: int | None, context: FeedContext) -> Iterator[Any]:
            self.units = 0
            for unit in inner(partition, context):
                self.units += 1
                yield unit

        provider.feed = feed
        session.register_feed("t", provider)


ALL = "select v, region, day, tags from {} order by v"


class TestDelta:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        deltalake = pytest.importorskip("deltalake")
        path = tmp_path / "a table"
        for number in range(4):
            deltalake.write_deltalake(str(path), part(number), mode="append", partition_by=["region"])
        return path

    def test_the_rows_of_a_table(self, session: Session, path: Path) -> None:
        counted = Counted(session, DeltaFiles(path))
        expected = pa.concat_tables(part(number) for number in range(4)).to_pylist()
        assert rows(session, ALL.format("t")) == expected
        assert counted.units == 8

    def test_partitions_and_bounds_rule_files_out(self, session: Session, path: Path) -> None:
        counted = Counted(session, DeltaFiles(path))
        assert rows(session, "select v from t where region = 'r 1/%' and v >= 35 order by v") == [
            {"v": 35}, {"v": 37}, {"v": 39},
        ]  # fmt: skip
        assert counted.units == 1
        query = f"select count(*) as c from t where day = date '{DAY + datetime.timedelta(days=2)}'"
        assert rows(session, query) == [{"c": 10}]
        assert counted.units == 2

    def test_versions(self, session: Session, path: Path) -> None:
        import deltalake

        old = deltalake.DeltaTable(str(path), version=0)
        for number, provider in enumerate([DeltaFiles(path, 0), DeltaFiles(old)]):
            session.register_feed(f"t{number}", provider)
            assert rows(session, f"select max(v) as v, count(*) as c from t{number}") == [{"v": 9, "c": 10}]
        with pytest.raises(UserError, match="version to the DeltaTable itself"):
            DeltaFiles(old, 1)
        with pytest.raises(UserError, match="cannot open the Delta table"):
            DeltaFiles(path, 99)
        provider = DeltaFiles(path)
        deltalake.write_deltalake(str(path), part(9), mode="append")
        session.register_feed("pinned", provider)
        assert rows(session, "select count(*) as c from pinned") == [{"c": 40}]

    def test_columns_that_were_added_and_copy_partitions(self, session: Session, path: Path) -> None:
        import deltalake

        more = pa.table({"v": pa.array([100], pa.int64()), "region": pa.array([None], pa.string()), "extra": ["new"]})
        deltalake.write_deltalake(str(path), more, mode="append", schema_mode="merge")
        session.register_feed("t", DeltaFiles(path))
        assert rows(session, "select v, region, day, extra from t where v > 38 order by v") == [
            {"v": 39, "region": "r 1/%", "day": DAY + datetime.timedelta(days=3), "extra": None},
            {"v": 100, "region": None, "day": None, "extra": "new"},
        ]

    def test_row_groups_of_it(self, session: Session, path: Path) -> None:
        session.register_feed("t", RowGroups(DeltaFiles(path), target_bytes=1))
        assert rows(session, "select count(*) as c, sum(v) as v from t") == [{"c": 40, "v": 780}]

    def test_deleted_rows_stay_deleted(self, session: Session, path: Path) -> None:
        import deltalake

        deltalake.DeltaTable(str(path)).delete("v < 25")
        session.register_feed("t", DeltaFiles(path))
        assert rows(session, "select count(*) as c, min(v) as v from t") == [{"c": 15, "v": 25}]

    def test_a_table_that_may_have_deletion_vectors_but_has_none(self, session: Session, tmp_path: Path) -> None:
        deltalake = pytest.importorskip("deltalake")
        settings = {"delta.enableDeletionVectors": "true"}
        deltalake.write_deltalake(str(tmp_path / "t"), part(0), configuration=settings)
        session.register_feed("t", DeltaFiles(tmp_path / "t"))
        assert rows(session, "select count(*) as c from t") == [{"c": 10}]

    def test_deletion_vectors_are_refused(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        write_log(tmp_path, features=["deletionVectors"], add={"deletionVector": VECTOR})
        with pytest.raises(NotPlainFilesError, match="cannot be read as plain files: it uses deletionVectors"):
            DeltaFiles(tmp_path)

    @pytest.mark.parametrize("features", [None, ["columnMapping"]])
    def test_column_mapping_is_refused(self, tmp_path: Path, features: list[str] | None) -> None:
        pytest.importorskip("deltalake")
        write_log(tmp_path, features=features, settings={"delta.columnMapping.mode": "name"})
        with pytest.raises(NotPlainFilesError, match="cannot be read as plain files: it uses columnMapping"):
            DeltaFiles(tmp_path)

    def test_what_is_no_table_is_named(self, tmp_path: Path) -> None:
        pytest.importorskip("deltalake")
        with pytest.raises(UserError, match=f"cannot open the Delta table {tmp_path}"):
            DeltaFiles(tmp_path)


class TestIceberg:
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Iterator[Any]:
        with iceberg_catalog(tmp_path) as made:
            yield made

    @pytest.fixture
    def table(self, catalog: Any) -> Any:
        made = catalog.create_table("n.t", schema=part(0).schema)
        with made.update_spec() as update:
            update.add_identity("region")
        for number in range(4):
            made.append(part(number))
        return made

    def test_the_rows_of_a_table(self, session: Session, catalog: Any, table: Any) -> None:
        expected = pa.concat_tables(part(number) for number in range(4)).to_pylist()
        counted = Counted(session, IcebergFiles(table))
        assert rows(session, ALL.format("t")) == expected
        assert counted.units == 8
        session.register_feed("named", IcebergFiles((catalog, "n.t")))
        assert rows(session, ALL.format("named")) == expected

    def test_planning_leaves_files_out(self, session: Session, table: Any) -> None:
        counted = Counted(session, IcebergFiles(table))
        assert rows(session, "select v from t where v >= 38 and v != 100 order by v") == [{"v": 38}, {"v": 39}]
        assert counted.units == 2
        query = f"select count(*) as c from t where day < date '{DAY + datetime.timedelta(days=1)}'"
        assert rows(session, query) == [{"c": 10}]
        assert counted.units == 2
        assert rows(session, "select count(*) as c from t where region = 'r 1/%'") == [{"c": 20}]
        assert counted.units == 4

    def test_snapshots(self, session: Session, table: Any) -> None:
        first = table.history()[0].snapshot_id
        session.register_feed("first", IcebergFiles(table, snapshot_id=first))
        assert rows(session, "select count(*) as c from first") == [{"c": 10}]
        provider = IcebergFiles(table)
        table.append(part(9))
        session.register_feed("pinned", provider)
        assert rows(session, "select count(*) as c from pinned") == [{"c": 40}]
        with pytest.raises(UserError, match="has no snapshot 7"):
            IcebergFiles(table, snapshot_id=7)

    def test_a_table_without_rows(self, session: Session, catalog: Any) -> None:
        session.register_feed("t", IcebergFiles(catalog.create_table("n.empty", schema=part(0).schema)))
        assert rows(session, "select v from t") == []

    def test_columns_may_be_added_and_dropped(self, session: Session, table: Any) -> None:
        from pyiceberg.types import StringType

        with table.update_schema() as update:
            update.add_column("extra", StringType())
            update.delete_column("tags")
        table.append(part(9).select(["v", "region", "day"]).append_column("extra", [["new"] * 10]))
        session.register_feed("t", IcebergFiles(table))
        assert session.table("t").schema().names == ["v", "region", "day", "extra"]
        assert rows(session, "select v, extra from t where v in (39, 90) order by v") == [
            {"v": 39, "extra": None},
            {"v": 90, "extra": "new"},
        ]

    def test_a_renamed_column_is_refused(self, table: Any) -> None:
        with table.update_schema() as update:
            update.rename_column("v", "w")
        with pytest.raises(UserError, match=r"c?\.?n\.t cannot be read as plain files: column 'v' was renamed to 'w'"):
            IcebergFiles(table)

    def test_a_column_whose_name_is_another_in_files_is_refused(self, catalog: Any) -> None:
        """Iceberg's writers escape such names in files, so a scan by name would find no column, and read NULLs."""
        table = catalog.create_table("n.odd", schema=pa.schema([("in euro", pa.int64())]))
        table.append(pa.table({"in euro": [7]}))
        with pytest.raises(UserError, match="column 'in euro' has another name in files"):
            IcebergFiles(table)

    def test_a_column_that_was_added_again_is_refused(self, table: Any) -> None:
        from pyiceberg.types import LongType

        with table.update_schema() as update:
            update.delete_column("v")
        with table.update_schema() as update:
            update.add_column("v", LongType())
        with pytest.raises(UserError, match="column 'v' was dropped and added again"):
            IcebergFiles(table)

    def test_a_column_of_another_type_is_refused(self, catalog: Any) -> None:
        from pyiceberg.types import LongType

        table = catalog.create_table("n.u", schema=pa.schema([("v", pa.int32())]))
        with table.update_schema() as update:
            update.update_column("v", LongType())
        with pytest.raises(UserError, match="column 'v' was int and is long"):
            IcebergFiles(table)

    def test_files_with_deletes_are_refused(self, session: Session, table: Any) -> None:
        """pyiceberg writes no delete files itself, so its planning is made to say that a file has one."""
        from pyiceberg.table import FileScanTask

        provider = IcebergFiles(table)
        tasks = list(table.scan().plan_files())
        with_delete = FileScanTask(tasks[3].file, delete_files={tasks[0].file})
        provider._plan = lambda condition: iter([tasks[0], with_delete])  # type: ignore[method-assign]
        session.register_feed("t", provider)
        with pytest.raises(UserError, match=r"n\.t cannot be read as plain files: .*deleted by delete files"):
            rows(session, "select v from t")

    def test_imported_files_are_read_if_their_columns_are_all_there(
        self, session: Session, catalog: Any, tmp_path: Path
    ) -> None:
        pq.write_table(part(0), tmp_path / "import.parquet")
        table = catalog.create_table("n.imported", schema=part(0).schema)
        table.add_files([f"file://{tmp_path}/import.parquet"])
        assert "schema.name-mapping.default" in table.properties
        session.register_feed("t", IcebergFiles(table))
        assert rows(session, "select sum(v) as v from t") == [{"v": 45}]
        with table.update_spec() as update:
            update.add_identity("day")
        with pytest.raises(UserError, match="imported files, which may lack"):
            IcebergFiles(table)

    def test_imported_files_with_other_names_are_refused(self, catalog: Any) -> None:
        mapping = json.dumps([{"field-id": 1, "names": ["v", "w"]}])
        table = catalog.create_table(
            "n.m", schema=pa.schema([("v", pa.int64())]), properties={"schema.name-mapping.default": mapping}
        )
        with pytest.raises(UserError, match="v or w for the same column"):
            IcebergFiles(table)

    def test_a_table_that_cannot_be_loaded_is_named(self, catalog: Any) -> None:
        with pytest.raises(UserError, match=r"cannot load the Iceberg table 'n\.nothing'"):
            IcebergFiles((catalog, "n.nothing"))


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [
        (lambda: DeltaFiles("x"), "deltalake", "delta"),
        (lambda: IcebergFiles(("c", "x")), "pyiceberg", "iceberg"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, make: Any, module: str, extra: str) -> None:
    hide_package(monkeypatch, module)
    with pytest.raises(UserError, match=f"this feed needs {module}, which is not installed") as caught:
        make()
    assert f"pip install 'sparkfusion[{extra}]'" in (caught.value.hint or "")


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_bounds_never_rule_out_what_holds(operator: str) -> None:
    import operator as python

    holds = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[operator]
    for least in range(4):
        for greatest in range(least, 4):
            for value in range(-1, 5):
                wanted = any(getattr(python, holds)(each, value) for each in range(least, greatest + 1))
                assert may_hold(operator, value, least, greatest) == wanted
    assert may_hold(operator, 1, None, None)
    assert may_hold(operator, 1, DAY, DAY)
