"""Options of reading CSV and JSON that the wire format loses, however the table came to be."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion.options import CsvReadOptions

from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.traps.conftest import Connected, assert_single_node


@pytest.fixture(scope="module")
def text_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files whose reading needs options. `packed` are compressed, under a name that does not say so."""
    directory = tmp_path_factory.mktemp("text")
    rows = "".join(f"{i},{i}\n" for i in range(30))
    for folder in ("csv", "packed", "gz", "array", "json_packed"):
        (directory / folder).mkdir()
    for i in range(3):
        (directory / "csv" / f"{i}.csv").write_text(f"a,b\n{rows}")
        (directory / "packed" / f"{i}.csv").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
        (directory / "gz" / f"{i}.csv.gz").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
        objects = [f'{{"a": {n}}}' for n in range(30)]
        (directory / "array" / f"{i}.json").write_text(f"[{','.join(objects)}]")
        (directory / "json_packed" / f"{i}.json").write_bytes(gzip.compress("\n".join(objects).encode()))
    return directory


PACKED = {"file_compression_type": "gzip"}


@pytest.mark.parametrize(
    ("registered", "read"),
    [
        ("packed", "packed"),
        ("packed", "public.packed"),
        ("packed", "packed as other"),
        ("public.packed", "packed"),
        ("Packed", "packed"),
        ('"Packed"', '"Packed"'),
        ("two words", '"two words"'),
    ],
)
def test_lost_csv_options_by_any_name(connected: Connected, text_files: Path, registered: str, read: str) -> None:
    session = connected()
    session.register_csv(registered, str(text_files / "packed"), **PACKED)
    assert_single_node(session.sql(f"select * from {read}"), "is lost when the plan is encoded")


@pytest.mark.parametrize(
    ("folder", "option", "value"),
    [
        ("packed", "file_compression_type", "gzip"),
        ("csv", "null_regex", "NA"),
        ("csv", "terminator", "\n"),
    ],
)
def test_lost_csv_options_in_an_options_object(
    connected: Connected, text_files: Path, folder: str, option: str, value: str
) -> None:
    session = connected()
    options = CsvReadOptions()
    setattr(options, option, value)
    session.register_csv("numbers", str(text_files / folder), options=options)
    assert_single_node(session.sql("select * from numbers"), f"table 'numbers': option '{option}'")


def test_lost_csv_options_given_by_position(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_csv("packed", str(text_files / "packed"), None, True, ",", 1000, ".csv", "gzip")
    assert_single_node(session.sql("select * from packed"), "is lost when the plan is encoded")


def test_compressed_files_are_seen_by_their_name(connected: Connected, text_files: Path) -> None:
    frame = connected().read_csv(str(text_files / "gz"), file_extension=".csv.gz", **PACKED)
    assert_single_node(frame, "is lost when the plan is encoded")


@pytest.mark.parametrize("ending", ["gz", "gzip", "GZ"])
def test_compressed_files_of_the_context_are_seen_by_their_name(
    connected: Connected, tmp_path: Path, ending: str
) -> None:
    """The session does not see how a table of its DataFusion context was made."""
    for i in range(3):
        (tmp_path / f"{i}.csv.{ending}").write_bytes(gzip.compress(b"a\n" + b"1\n" * 30))
    session = connected()
    session.context.register_csv("t", tmp_path, file_extension=f".csv.{ending}", file_compression_type="gzip")
    assert_single_node(session.sql("select a from t"), f".csv.{ending}' is lost when the plan is encoded")


def test_lost_options_of_unnamed_csv(connected: Connected, text_files: Path) -> None:
    frame = connected().read_csv(str(text_files / "packed"), **PACKED)
    assert_single_node(frame, "is lost when the plan is encoded")


def test_lost_options_of_unnamed_json(connected: Connected, text_files: Path) -> None:
    frame = connected().read_json(str(text_files / "json_packed"), **PACKED)
    assert_single_node(frame, "is lost when the plan is encoded")


def test_lost_json_options(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_json("packed", str(text_files / "json_packed"), **PACKED)
    assert_single_node(session.sql("select * from packed"), "table 'packed': option 'file_compression_type'")


EXTERNAL = {
    "plain": "create external table {name} stored as json location '{at}' options ({lost})",
    "options first": "create external table {name} options ({lost}) stored as json location '{at}'",
    "comment": "-- arrays\ncreate external table {name} stored as json location '{at}' options ({lost})",
    "comment inside": "create /* arrays */ external table {name} stored as json location '{at}' options ({lost})",
    "block comment": "/* arrays */ create external table {name} stored as json location '{at}' options ({lost})",
}
LOST_OPTION = "'format.newline_delimited' 'false'"


@pytest.mark.parametrize("statement", EXTERNAL.values(), ids=EXTERNAL)
def test_lost_options_of_external_tables(connected: Connected, text_files: Path, statement: str) -> None:
    session = connected()
    session.sql(statement.format(name="arrays", at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    assert_single_node(session.sql("select * from arrays"), "table 'arrays': option 'format.newline_delimited'")


@pytest.mark.parametrize(
    ("created", "read"), [("Arrays", "arrays"), ("public.arrays", "arrays"), ('"two words"', '"two words"')]
)
def test_lost_options_of_external_tables_by_any_name(
    connected: Connected, text_files: Path, created: str, read: str
) -> None:
    session = connected()
    session.sql(EXTERNAL["plain"].format(name=created, at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    assert_single_node(session.sql(f"select * from {read}"), "is lost when the plan is encoded")


def test_option_names_need_no_quotes(connected: Connected, text_files: Path) -> None:
    session = connected()
    lost = "format.newline_delimited false"
    session.sql(EXTERNAL["plain"].format(name="arrays", at=f"{text_files / 'array'}/", lost=lost))
    assert_single_node(session.sql("select * from arrays"), "is lost when the plan is encoded")


def test_lost_options_behind_a_parenthesis_in_quotes(connected: Connected, text_files: Path) -> None:
    session = connected()
    options = "'format.comment' ')', 'format.null_regex' 'NA'"
    session.sql(f"create external table t stored as csv location '{text_files / 'csv'}/' options ({options})")
    assert_single_node(session.sql("select * from t"), "table 't': option 'format.null_regex'")


def test_a_table_that_is_kept_keeps_its_lost_options(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.sql(EXTERNAL["plain"].format(name="arrays", at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    session.sql(f"create external table if not exists arrays stored as csv location '{text_files / 'csv'}/'")
    assert_single_node(session.sql("select * from arrays"), "is lost when the plan is encoded")


def test_a_table_that_is_replaced_loses_no_options(connected: Connected, text_files: Path, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"a": range(30)}), tmp_path / f"{number}.parquet")
    session = connected()
    session.sql(EXTERNAL["plain"].format(name="arrays", at=f"{text_files / 'array'}/", lost=LOST_OPTION))
    session.sql(f"create or replace external table arrays stored as parquet location '{tmp_path}/'")
    assert_distributed_eq(session, "select a from arrays where a > 3")


def test_a_dropped_table_takes_its_lost_options_with_it(connected: Connected, text_files: Path) -> None:
    session = connected()
    session.register_json("arrays", str(text_files / "json_packed"), **PACKED)
    session.deregister_table("arrays")
    session.register_record_batches("arrays", [[pa.record_batch({"a": [1]})], [pa.record_batch({"a": [2]})]])
    assert_distributed_eq(session, "select a from arrays")


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("streams")
    for number in range(3):
        rows = pa.table({"a": range(number * 30, number * 30 + 30)})
        with pa.ipc.new_stream(str(directory / f"{number}.arrow"), rows.schema) as writer:
            writer.write_table(rows)
    return directory


STREAM = "is an Arrow file in the stream format"


def test_arrow_streams_run_on_a_single_node(connected: Connected, streams: Path) -> None:
    session = connected()
    session.register_arrow("registered", str(streams))
    session.sql(f"create external table created stored as arrow location '{streams}/'")
    assert_single_node(session.sql("select a from registered where a > 3"), STREAM)
    assert_single_node(session.sql("select sum(a) as s from created join facts on a = v"), STREAM)
    assert_single_node(session.read_arrow(str(streams)), STREAM)


def test_arrow_files_are_distributed_beside_a_word_about_streams(connected: Connected, tmp_path: Path) -> None:
    rows = pa.table({"a": ["file_type=arrow_stream", "b"]})
    for number in range(3):
        with pa.ipc.new_file(str(tmp_path / f"{number}.arrow"), rows.schema) as writer:
            writer.write_table(rows)
    session = connected()
    session.register_arrow("files", str(tmp_path))
    assert_distributed_eq(session, "select a from files where a = 'file_type=arrow_stream'")


CARRIED = CsvReadOptions(delimiter="|", quote="'", escape="\\", comment="#", newlines_in_values=True)


def test_other_csv_options_are_carried(connected: Connected, tmp_path: Path) -> None:
    rows = "".join(f"{i}|'x\\'|y\nz'|{i}\n" for i in range(20))
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"# first\na|b|c\n{rows}# last\n")
    session = connected()
    session.register_csv("odd", str(tmp_path), options=CARRIED)
    assert_distributed_eq(session, "select * from odd")
