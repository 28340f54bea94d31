"""Units that are files: scanned natively, in every format, whole or in parts, wherever they are."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from sparkfusion import FeedContext, FileUnit, Session, SparkfusionError, UserError
from tests.suites.fake_s3 import fake_s3
from tests.suites.feeds import (
    ALL_RUN_LOCALLY,
    NOT_LOCAL,
    ONE_STORE,
    SCHEMA,
    Scripted,
    assert_answers,
    exactly_once,
    pieces,
    table_of,
    units_seen,
)

pytestmark = ONE_STORE

SAME_SCANS = "DataFusion scans files the same way on every runner; there some of these are enough"
FILES = 5
WHOLE = table_of(range(10))


def write_parquet(piece: pa.Table, path: Path) -> None:
    pq.write_table(piece, path, row_group_size=2)


def write_csv(piece: pa.Table, path: Path, **options: Any) -> None:
    pa_csv.write_csv(piece, path, pa_csv.WriteOptions(**options))


def write_json(piece: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in piece.to_pylist()))


def write_arrow(piece: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), piece.schema) as writer:
        writer.write_table(piece, max_chunksize=2)


def write_stream(piece: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), piece.schema) as writer:
        writer.write_table(piece, max_chunksize=2)


def write_either(piece: pa.Table, path: Path) -> None:
    """Every other file in the stream format."""
    (write_stream if int(path.stem) % 2 else write_arrow)(piece, path)


WRITERS: dict[str, Callable[..., None]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
    "arrow": write_arrow,
}

FORMATS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "parquet": ("parquet", {}, {}),
    "csv": ("csv", {}, {}),
    "csv without header": ("csv", {"include_header": False}, {"has_header": False}),
    "csv with semicolons": ("csv", {"delimiter": ";"}, {"delimiter": ";"}),
    "json": ("json", {}, {}),
    "arrow": ("arrow", {}, {}),
    "arrow streams": ("arrow", {"writer": write_stream}, {}),
    "arrow files and streams": ("arrow", {"writer": write_either}, {}),
}


def write_files(
    directory: Path,
    format: str = "parquet",
    table: pa.Table = WHOLE,
    files: int = FILES,
    writer: Callable[..., None] | None = None,
    **options: Any,
) -> list[Path]:
    paths = []
    for number, piece in enumerate(pieces(table, files)):
        paths.append(directory / f"{number}.{format}")
        (writer or WRITERS[format])(piece, paths[-1], **options)
    return paths


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format(session: Session, tmp_path: Path, kind: str, sized: bool) -> None:
    format, written, read = FORMATS[kind]
    paths = write_files(tmp_path, format, **written)
    provider = Scripted([FileUnit(str(path), path.stat().st_size if sized else None) for path in paths])
    session.register_feed("f", provider, schema=SCHEMA, format=format, tasks=2, **read)
    assert_answers(session, "select * from f", f=WHOLE)
    assert_answers(session, "select k, count(*) as n, max(s) as m from f where v > 2000 group by k", f=WHOLE)
    assert_answers(session, "select count(*) as n from f", f=WHOLE)
    assert provider.asked == 3 * FILES


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
def test_every_format_on_every_runner(session: Session, tmp_path: Path) -> None:
    for number, (format, written, read) in enumerate(FORMATS.values()):
        directory = tmp_path / str(number)
        directory.mkdir()
        units = [FileUnit(str(path)) for path in write_files(directory, format, **written)]
        session.register_feed(f"f{number}", Scripted(units), schema=SCHEMA, format=format, tasks=2, **read)
    query = " union all ".join(f"select * from f{number}" for number in range(len(FORMATS)))
    found = session.sql(f"select unit, count(*) as n, sum(v) as x from ({query}) group by unit").to_pylist()
    times = len(FORMATS)
    expected = [(unit, 3 * times, (3000 * unit + 3) * times) for unit in range(10)]
    assert sorted((row["unit"], row["n"], row["x"]) for row in found) == expected


def test_the_columns_of_a_file_are_found_by_name(session: Session, tmp_path: Path) -> None:
    """In another order, of other types, some missing, some more than the table has."""
    first, second = pieces(WHOLE, 2)
    pq.write_table(first.select(["s", "v", "k", "unit"]), tmp_path / "0.parquet")
    other = second.select(["unit", "v"]).append_column("more", pa.array(range(second.num_rows)))
    pq.write_table(
        other.cast(pa.schema([("unit", pa.int32()), ("v", pa.int32()), ("more", pa.int64())])), tmp_path / "1.parquet"
    )
    session.register_feed("f", _units(tmp_path), schema=SCHEMA, format="parquet")
    nulls = second.set_column(1, "k", pa.nulls(second.num_rows, pa.int64()))
    nulls = nulls.set_column(3, "s", pa.nulls(second.num_rows, pa.string()))
    expected = pa.concat_tables([first, nulls])
    assert_answers(session, "select * from f", f=expected)
    assert_answers(session, "select unit, s from f where k is null and v > 1", f=expected)


def _units(directory: Path) -> Scripted:
    return Scripted([FileUnit(str(path)) for path in sorted(directory.iterdir())])


# ---- parts of files


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("cuts", [1, 3, 50])
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv without header", "json", "arrow", "arrow streams"])
def test_parts_of_a_file_make_the_whole(session: Session, tmp_path: Path, kind: str, cuts: int) -> None:
    """Ranges that cover the file: every row is in one of them, wherever they begin."""
    format, written, read = FORMATS[kind]
    (path,) = write_files(tmp_path, format, files=1, **written)
    size = path.stat().st_size
    ends = [size * number // cuts for number in range(cuts + 1)]
    units = [FileUnit(str(path), size, range=(a, b)) for a, b in itertools.pairwise(ends) if b > a]
    session.register_feed("f", Scripted(units), schema=SCHEMA, format=format, tasks=2, **read)
    assert_answers(session, "select * from f", f=WHOLE)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_parts_of_files_on_every_runner(session: Session, tmp_path: Path, kind: str) -> None:
    format, written, read = FORMATS[kind]
    units = []
    for path in write_files(tmp_path, format, files=2, **written):
        size = path.stat().st_size
        units += [FileUnit(str(path), size, range=(0, size // 3)), FileUnit(str(path), size, range=(size // 3, size))]
    session.register_feed("f", Scripted(units), schema=SCHEMA, format=format, tasks=2, **read)
    assert_answers(session, "select * from f where v > 1", f=WHOLE)


def test_a_part_of_a_file_is_only_that_part(session: Session, tmp_path: Path) -> None:
    (path,) = write_files(tmp_path, files=1)
    groups = pq.ParquetFile(path).metadata
    starts = [groups.row_group(i).column(0).dictionary_page_offset or 4 for i in range(groups.num_row_groups)]
    size = path.stat().st_size
    unit = FileUnit(str(path), size, range=(starts[1], starts[3]))
    assert unit.weight == starts[3] - starts[1]
    session.register_feed("f", Scripted([unit]), schema=SCHEMA, format="parquet")
    assert (
        sorted(session.sql("select v from f").collect().column("v").to_pylist()) == WHOLE.column("v").to_pylist()[2:6]
    )


# ---- pruning


def scanned(session: Session, query: str) -> tuple[int, int]:
    """Rows of the answer, and rows that the scans gave."""
    with session.sql(query).stream() as rows:
        found = sum(batch.num_rows for batch in rows)
        operators = [each for report in rows.reports() for each in report.operators]
    return found, sum(each.rows or 0 for each in operators if "DataSource" in each.name)


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("pushdown", [False, True])
@pytest.mark.parametrize(("condition", "most"), [("v = 4001", 2), ("v >= 9000", 4), ("s = 'nowhere'", 0), ("v < 0", 0)])
def test_row_groups_that_cannot_match_are_not_read(
    session: Session, tmp_path: Path, condition: str, most: int, pushdown: bool
) -> None:
    session.config["datafusion.execution.parquet.pushdown_filters"] = pushdown
    paths = write_files(tmp_path)
    session.register_feed("f", Scripted([FileUnit(str(p)) for p in paths]), schema=SCHEMA, format="parquet", tasks=2)
    query = f"select v, s from f where {condition}"
    assert_answers(session, query, f=WHOLE)
    _, read = scanned(session, query)
    assert read <= most, "it read row groups that cannot have such rows"
    assert scanned(session, "select v from f where v + 0 >= 0")[1] == WHOLE.num_rows, "the count counts"


PUSHED = {
    "order of columns": "select s, v from f where k = 1 and s is not null",
    "only the filter's": "select count(*) as n from f where k = 1",
    "computed": "select v + unit as x from f where v % 3 = 0 and unit > 2",
    "text": "select v from f where s like 's%' and s <> 's3'",
    "either": "select unit from f where k = 1 or s is null",
    "joined": "select a.v from f a join f b on a.v = b.v + 1 where a.k = 1 and b.s is not null",
    "aggregated": "select unit, sum(v) as x from f where v > 2500 and s in ('s1', 's2', 's3', 's4') group by unit",
    "case": "select case when k = 1 then s else 'x' end as c from f where v between 1000 and 5000",
    "limited": "select count(*) as n from (select v from f where k = 1 limit 3) x",
}


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("pushdown", [False, True])
@pytest.mark.parametrize("query", PUSHED.values(), ids=PUSHED)
def test_filters_over_parquet(session: Session, tmp_path: Path, query: str, pushdown: bool) -> None:
    session.config["datafusion.execution.parquet.pushdown_filters"] = pushdown
    paths = write_files(tmp_path)
    session.register_feed("f", Scripted([FileUnit(str(p)) for p in paths]), schema=SCHEMA, format="parquet", tasks=2)
    assert_answers(session, query, f=WHOLE)


# ---- where files are

NAMES = {
    "space": "a file.parquet",
    "percent": "100%.parquet",
    "escaped": "a%20b%2Fc.parquet",
    "hash": "a#b?c&d=e.parquet",
    "unicode": "größe-日本-🎉.parquet",
    "star": "a*[b]{c}.parquet",
    "equals": "day=2024-01-01.parquet",
    "quote": 'it\'s "quoted".parquet',
    "plus": "a+b:c;d,e.parquet",
    "backslash": "a\\b.parquet",
    "no extension": "rows",
    "dots": "..rows..parquet",
}


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_any_path(session: Session, tmp_path: Path, name: str) -> None:
    directory = tmp_path / f"in {name}.d"
    directory.mkdir()
    write_parquet(WHOLE, directory / name)
    path = directory / name
    units = [FileUnit(str(path)), FileUnit(str(path), path.stat().st_size)]
    session.register_feed("f", Scripted(units), schema=SCHEMA, format="parquet")
    assert_answers(session, "select * from f", f=pa.concat_tables([WHOLE, WHOLE]))


def test_odd_paths_on_every_runner(session: Session, tmp_path: Path) -> None:
    units = []
    for name, piece in zip(NAMES.values(), pieces(WHOLE, len(NAMES)), strict=True):
        write_parquet(piece, tmp_path / name)
        units.append(FileUnit(str(tmp_path / name)))
    session.register_feed("f", Scripted(units), schema=SCHEMA, format="parquet", tasks=2)
    assert_answers(session, "select * from f", f=WHOLE)


def test_paths_of_other_forms(session: Session, tmp_path: Path) -> None:
    """Relative, through a link, with dots, as a URL, as a Path."""
    names = ["relative", "link", "dots", "url", "path"]
    for number, piece in enumerate(pieces(WHOLE, len(names))):
        write_parquet(piece, tmp_path / f"{names[number]} %.parquet")
    (tmp_path / "linked.parquet").symlink_to(tmp_path / "link %.parquet")
    (tmp_path / "sub").mkdir()
    units = [
        FileUnit(os.path.relpath(tmp_path / "relative %.parquet")),
        FileUnit(str(tmp_path / "linked.parquet")),
        FileUnit(f"{tmp_path}/sub/.././/dots %.parquet"),
        FileUnit((tmp_path / "url %.parquet").as_uri()),
        FileUnit(tmp_path / "path %.parquet"),
    ]
    session.register_feed("f", Scripted(units), schema=SCHEMA, format="parquet", tasks=2)
    assert_answers(session, "select * from f", f=WHOLE)


@pytest.mark.runners("local", reason="stores on Spark have tests of their own, with the same server")
def test_files_in_object_stores_beside_local_ones(session: Session, tmp_path: Path) -> None:
    """Units of one feed may lie in several stores: a task reads some of each at once."""
    with fake_s3() as server:
        session.register_object_store("s3://", server.store_maker(), "bucket")
        units = []
        for number, piece in enumerate(pieces(WHOLE, 4)):
            server.put_table(f"in/{number} x.parquet", piece)
            size = len(server.objects[f"bucket/in/{number} x.parquet"])
            units.append(FileUnit(f"s3://bucket/in/{number} x.parquet", size))
        write_parquet(table_of([50]), tmp_path / "here.parquet")
        units.insert(2, FileUnit(str(tmp_path / "here.parquet")))
        session.register_feed("f", Scripted(units), schema=SCHEMA, format="parquet", tasks=1)
        assert_answers(session, "select * from f", f=pa.concat_tables([WHOLE, table_of([50])]))


# ---- files that are not what they should be


@pytest.mark.parametrize("sized", [True, False], ids=["sized", "unsized"])
def test_a_missing_file_is_named(session: Session, tmp_path: Path, sized: bool) -> None:
    (path,) = write_files(tmp_path, files=1)
    units = [FileUnit(str(path)), FileUnit(str(tmp_path / "not there.parquet"), 100 if sized else None)]
    provider = Scripted(units)
    session.register_feed("f", provider, schema=SCHEMA, format="parquet")
    with pytest.raises(UserError, match=r"table 'f': .*not there\.parquet"):
        session.sql("select sum(v) from f").collect()
    assert provider.closed == 1


@pytest.mark.runners("local", reason=SAME_SCANS)
@pytest.mark.parametrize("format", WRITERS)
def test_a_damaged_file_is_named(session: Session, tmp_path: Path, format: str) -> None:
    paths = write_files(tmp_path, format)
    paths[3].write_bytes(b"\x00\xff\xfe not what you think,\n{]" * 20)
    provider = Scripted([FileUnit(str(path)) for path in paths])
    session.register_feed("f", provider, schema=SCHEMA, format=format, tasks=2)
    with pytest.raises(SparkfusionError) as raised:
        session.sql("select sum(v) from f").collect()
    assert str(paths[3]).lstrip("/") in str(raised.value)
    assert provider.closed == 1


def test_a_wrong_size_is_an_error_or_right_anyway(session: Session, tmp_path: Path) -> None:
    """A provider that is wrong about the size must not lose rows in silence."""
    (path,) = write_files(tmp_path, files=1)
    session.register_feed(
        "f", Scripted([FileUnit(str(path), path.stat().st_size - 50)]), schema=SCHEMA, format="parquet"
    )
    try:
        found = session.sql("select unit from f").collect()
    except SparkfusionError as error:
        assert str(path).lstrip("/") in str(error)  # noqa: PT017
    else:
        assert units_seen(found) == exactly_once(range(10))


def _one_file(path: str, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
    yield FileUnit(path)


@pytest.mark.parametrize("name", ["a\nb.parquet", "a\x01b.parquet", "a\x7fb.parquet"])
def test_a_name_with_a_control_character_is_the_users_error(session: Session, tmp_path: Path, name: str) -> None:
    """No object store takes it, however the unit spells it: as it is, in a URL, behind a link."""
    pq.write_table(WHOLE, tmp_path / name)
    (tmp_path / "link.parquet").symlink_to(tmp_path / name)
    for path in (str(tmp_path / name), (tmp_path / name).as_uri(), str(tmp_path / "link.parquet")):
        session.register_feed("f", Scripted(partial(_one_file, path)), schema=SCHEMA, format="parquet")
        with pytest.raises(UserError, match="control character") as raised:
            session.sql("select sum(v) from f").collect()
        assert "'f'" in str(raised.value)
        session.deregister_table("f")


def test_a_range_behind_the_end_is_the_users_error(session: Session, tmp_path: Path) -> None:
    """Where the provider does not know the size, the task finds it out."""
    (path,) = write_files(tmp_path, files=1)
    far = FileUnit(str(path), range=(0, path.stat().st_size + 1))
    session.register_feed("f", Scripted([far]), schema=SCHEMA, format="parquet")
    with pytest.raises(UserError, match="ends after the end of the file") as raised:
        session.sql("select unit from f").collect()
    assert "'f'" in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_file_that_cannot_be_that_type_is_an_error(session: Session, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": ["x", "y"]}), tmp_path / "text.parquet")
    session.register_feed("f", _units(tmp_path), schema=SCHEMA, format="parquet")
    with pytest.raises(SparkfusionError):
        session.sql("select sum(v) from f").collect()


def test_an_empty_file_has_no_rows(session: Session, tmp_path: Path) -> None:
    pq.write_table(WHOLE.slice(0, 0), tmp_path / "empty.parquet")
    write_parquet(WHOLE, tmp_path / "rows.parquet")
    session.register_feed("f", _units(tmp_path), schema=SCHEMA, format="parquet", tasks=2)
    assert_answers(session, "select * from f", f=WHOLE)


def test_files_may_come_while_the_query_runs(session: Session, tmp_path: Path) -> None:
    """The provider makes each file when it is asked for it."""

    def script(partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        for number, piece in enumerate(pieces(WHOLE, 4)):
            path = tmp_path / f"{number}.parquet"
            write_parquet(piece, path)
            yield FileUnit(str(path))

    session.register_feed("f", Scripted(script), schema=SCHEMA, format="parquet", tasks=2)
    assert_answers(session, "select k, sum(v) as x from f group by k", f=WHOLE)


def test_a_file_that_was_replaced_is_read_anew(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    session.register_feed("f", Scripted([FileUnit(str(path))]), schema=SCHEMA, format="parquet")
    for units in ([1], [2, 3], []):
        write_parquet(table_of(units), path)
        assert units_seen(session.sql("select unit from f").collect()) == exactly_once(units)


def test_a_file_may_be_given_more_than_once(session: Session, tmp_path: Path) -> None:
    write_parquet(WHOLE, tmp_path / "rows.parquet")
    shutil.copy(tmp_path / "rows.parquet", tmp_path / "again.parquet")
    units = [FileUnit(str(tmp_path / "rows.parquet"))] * 2 + [FileUnit(str(tmp_path / "again.parquet"))]
    session.register_feed("f", Scripted(units), schema=SCHEMA, format="parquet", tasks=2)
    assert units_seen(session.sql("select unit from f").collect()) == exactly_once(range(10), rows=9)
