from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.cli.columns import csv_field
from sparkfusion.cli.output import OutputFormat, describe_format, destination, format_for, unique_names, write
from sparkfusion.cli.values import encode, plain
from sparkfusion.errors import UserError

FORMATS: tuple[OutputFormat, ...] = ("csv", "json", "jsonl")
TABLE = pa.table({"id": [1, 2, 3], "name": ["a", None, 'x,"y"'], "part": [1.5, float("nan"), None]})


def written(table: pa.Table, form: OutputFormat, max_rows: int = 100) -> str:
    out = io.StringIO()
    assert write(table.schema, table.to_batches(max_chunksize=2), out, form, max_rows=max_rows) == table.num_rows
    return out.getvalue()


@pytest.mark.parametrize(
    ("path", "form", "implied"),
    [
        ("a.CSV", "csv", True),
        ("a.json", "json", True),
        ("a.ndjson", "jsonl", True),
        ("a.md", "markdown", True),
        ("a.parq", "parquet", True),
        ("a.feather", "arrow", True),
        ("a.avro", "table", False),
        ("a.csv.gz", "table", False),
        ("a.txt", "table", True),
    ],
)
def test_names_of_files_imply_a_format(path: str, form: OutputFormat, implied: bool) -> None:
    assert format_for(path) == form
    assert (describe_format(path) is None) == implied


def test_csv_keeps_null_and_the_empty_string_apart() -> None:
    shown = written(pa.table({"a": ["", None], "b": [1, 2]}), "csv")
    assert shown == 'a,b\n"",1\n,2\n'


def test_csv_can_be_read_back() -> None:
    rows = list(csv.reader(io.StringIO(written(TABLE, "csv"))))
    assert rows == [["id", "name", "part"], ["1", "a", "1.5"], ["2", "", "NaN"], ["3", 'x,"y"', ""]]


ODD = ["", " ", "a", " a", "a\u2003", "é", 'x"', "a,b", "a\nb", "a\r", "\\", "\x00", "\x1c", "\x7f", "😀", None]
EVERY_KIND = pa.table(
    {
        "text": pa.array(ODD),
        "large": pa.array(ODD, pa.large_string()),
        "view": pa.array(ODD).cast(pa.string_view()),
        "dictionary": pa.array(ODD).dictionary_encode(),
        "integer": pa.array([*range(-7, 8), None]),
        "flag": pa.array([True, False, None, True] * 4),
        "float": pa.array(
            [0.1, 1.0, -0.0, 1e16, 1e-5, 1e22, 5e-324, float("nan"), float("inf"), None, 2.5, 3.5] + [1e3] * 4
        ),
        "float32": pa.array([0.1, 1.0, None, 16777216.0] * 4, pa.float32()),
        "decimal": pa.array(
            [Decimal("1.10"), Decimal("-0.01"), None, Decimal("12345678.90")] * 4, pa.decimal128(12, 2)
        ),
        "tiny": pa.array([Decimal("0.000000000001"), Decimal(0), None, Decimal(1)] * 4, pa.decimal128(20, 12)),
        "day": pa.array([0, -1, None, 20000] * 4, pa.int32()).cast(pa.date32()),
        "moment": pa.array([0, -1, None, 10**15] * 4, pa.int64()).cast(pa.timestamp("ns")),
        "zoned": pa.array([0, -1, None, 10**15] * 4, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "span": pa.array([0, -1, None, 5] * 4, pa.int64()).cast(pa.duration("s")),
        "bytes": pa.array([b"", b"\xff", None, b"a"] * 4),
        "list": pa.array([[1, None], [], None, [2]] * 4),
        "struct": pa.array([{"a": 'x"', "b": 1.5}, None, {"a": None, "b": None}, {"a": "", "b": 0.0}] * 4),
        "nothing": pa.nulls(16),
    }
)


@pytest.mark.parametrize("name", EVERY_KIND.column_names)
def test_columns_are_written_like_their_values_one_by_one(name: str) -> None:
    table = EVERY_KIND.select([name])
    values = [value for batch in table.to_batches() for value in plain(batch.column(0))]
    assert written(table, "csv") == "".join(f"{line}\n" for line in [name, *map(csv_field, values)])
    assert written(table, "jsonl") == "".join(f'{{"{name}":{encode(value)}}}\n' for value in values)
    assert json.loads(written(table, "json")) == [json.loads(line) for line in written(table, "jsonl").splitlines()]


@pytest.mark.parametrize("first", [0, 3_000])
def test_values_that_come_often_are_written_like_others(first: int) -> None:
    """Each of few values is written once. The rows after the first ones may have many others."""
    few = [0.0, -0.0, 0.25, float("nan"), float("-inf"), None, 1e22, 3.0]
    values = [*range(first), *few * 400, *(number / 7 for number in range(2_000))]
    floats = pa.array([None if value is None else float(value) for value in values])
    decimals = pa.array([Decimal(number % 5).scaleb(-2) for number in range(3_000)], pa.decimal128(12, 2))
    for column in (floats, decimals):
        batch = pa.record_batch({"n": column})
        assert lines_of(batch, "csv") == ["n", *map(csv_field, plain(column))]
        assert lines_of(batch, "jsonl") == [f'{{"n":{encode(value)}}}' for value in plain(column)]


def test_rows_without_quotes_are_written_like_rows_with_quotes() -> None:
    """Arrow's own writer writes the first ones, and joins make the others."""
    bare = EVERY_KIND.select(["integer", "flag", "float", "float32", "decimal", "tiny", "day", "moment", "zoned"])
    quoted = bare.append_column("text", pa.array(["a,b"] * bare.num_rows))
    lines = written(bare, "csv").splitlines()
    assert [f'{line},"a,b"' for line in lines[1:]] == written(quoted, "csv").splitlines()[1:]
    assert len(lines) == bare.num_rows + 1


def test_batches_of_many_rows_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {form: written(EVERY_KIND, form) for form in FORMATS}
    monkeypatch.setattr("sparkfusion.cli.columns.ROWS_AT_ONCE", 1)
    assert {form: written(EVERY_KIND, form) for form in FORMATS} == whole


def test_json_is_one_array() -> None:
    assert json.loads(written(TABLE, "json")) == [
        {"id": 1, "name": "a", "part": 1.5},
        {"id": 2, "name": None, "part": "NaN"},
        {"id": 3, "name": 'x,"y"', "part": None},
    ]


def test_json_of_nothing_is_an_empty_array() -> None:
    assert json.loads(written(TABLE.slice(0, 0), "json")) == []


def test_jsonl_is_an_object_a_line() -> None:
    lines = written(TABLE, "jsonl").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 3]


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_rows_are_written_as_they_arrive(form: OutputFormat) -> None:
    out = io.StringIO()
    seen: list[str] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in TABLE.to_batches(max_chunksize=1):
            seen.append(out.getvalue())
            yield batch

    write(TABLE.schema, batches(), out, form)
    assert "a" in seen[1]
    assert len(seen[0]) < len(seen[1]) < len(seen[2])


def test_a_table_shows_null_and_aligns_numbers() -> None:
    lines = written(TABLE, "table").splitlines()
    assert "| id | name  | part |" in lines
    assert "|  2 | NULL  |  NaN |" in lines
    assert lines[-1] == "3 rows"


def test_a_table_tells_how_many_rows_it_left_out() -> None:
    lines = written(TABLE, "table", max_rows=2).splitlines()
    assert lines[-1] == "3 rows, 1 not shown (--max-rows)"
    assert sum(line.startswith("|  ") for line in lines) == 2


def test_a_table_in_a_file_is_never_folded() -> None:
    wide = pa.table({f"column_{number}": ["x" * 50] for number in range(20)})
    assert any(line.count("x" * 50) == 20 for line in written(wide, "table").splitlines())


def test_markup_in_data_is_only_data() -> None:
    assert "[bold]" in written(pa.table({"a": ["[bold]"]}), "table")


def test_a_result_without_columns_prints_no_table() -> None:
    assert written(pa.table({}), "table") == ""


def test_equal_names_stay_apart() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    assert json.loads(written(table, "jsonl")) == {"id": 1, "id_1": 2}
    assert unique_names(["a", "a", "a"]) == ["a", "a_1", "a_2"]


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with destination(str(target)) as out:
        out.write("x\n")
        assert not target.exists()
    assert target.read_text() == "x\n"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_cannot_be_made_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 250)  # too long for the name with which it begins
    with pytest.raises(UserError, match=rf"cannot write '{target}': File name too long"), destination(str(target)):
        pass


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    def fail_half_way() -> None:
        with destination(str(target)) as out:
            out.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_table_of_many_rows_is_written_at_once(tmp_path: Path) -> None:
    """rich takes 2 ms for a row of this width."""
    batch = pa.record_batch({f"c{index}": pa.array(range(20_000)) for index in range(8)})
    started = time.process_time()
    with (tmp_path / "out").open("w") as out:
        write(batch.schema, [batch], out, "table", max_rows=20_000)
    assert time.process_time() - started < 10
    assert (tmp_path / "out").read_text().count("\n") == 20_005


def test_values_of_several_lines_and_wide_letters_keep_the_grid() -> None:
    out = io.StringIO()
    batch = pa.record_batch({"a": ["two\nlines", "日本", None], "n": [1, 20, 300]})
    write(batch.schema, [batch], out, "table")
    assert out.getvalue().splitlines() == [
        "+-------+-----+",
        "| a     |   n |",
        "+-------+-----+",
        "| two   |   1 |",
        "| lines |     |",
        "| 日本  |  20 |",
        "| NULL  | 300 |",
        "+-------+-----+",
        "3 rows",
    ]


def test_csv_in_a_file_is_csv_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Batches for a file are converted on several threads; their order stays."""
    batches = [pa.record_batch({"n": [n] * 3, "t": ["", "a,b", f"row {n}"]}) for n in range(100)]
    path = tmp_path / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        assert write(batches[0].schema, batches, out, "csv") == 300
    assert write(batches[0].schema, batches, sys.stdout, "csv") == 300
    assert path.read_text() == capsys.readouterr().out


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_one_result_as_a_file_of_arrow(tmp_path: Path, form: OutputFormat) -> None:
    batch = pa.record_batch([pa.array([1, None]), pa.array(["a", "b"], pa.string_view())], names=["x", "x"])
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as out:
        assert write(batch.schema, [batch, batch], out, form) == 4
        with pytest.raises(UserError, match="holds the result of one statement"):
            write(batch.schema, [batch], out, form)
    read = pq.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
    assert read.to_pydict() == {"x": [1, None] * 2, "x_1": ["a", "b"] * 2}


def lines_of(batch: pa.RecordBatch, form: OutputFormat) -> list[str]:
    """The lines of one batch; no value may have a line end."""
    out = io.StringIO(newline="")
    write(batch.schema, [batch], out, form)
    return out.getvalue().removesuffix("\n").split("\n")


def test_floats_are_written_like_python_writes_them() -> None:
    """Arrow writes most of them, in another way than Python if they are whole, small or large."""
    chosen = Random(7)
    values = [chosen.choice((-1, 1)) * chosen.random() * 10.0 ** chosen.randint(-8, 20) for _ in range(5000)]
    values += [float(round(value)) for value in values[:1000]]
    values += [scale * near for scale in (1e-5, 1e-4, 1e9, 1e10, 1e15, 1e16) for near in (1.0, 1 - 2**-53, 1 + 2**-52)]
    for kind in (pa.float64(), pa.float32()):
        batch = pa.record_batch({"f": pa.array(values, kind)})
        assert lines_of(batch, "csv") == ["f", *map(repr, batch.column("f").to_pylist())]


@pytest.mark.parametrize("letters", ["ab ,", 'ab "', "ab\r", "ab", "ab \t,", "aé ,", "a\u2003,"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_are_quoted_like_one_by_one_in_every_part_of_a_batch(letters: str, kind: pa.DataType) -> None:
    chosen = Random(7)
    texts = ["".join(chosen.choices(letters, k=chosen.randint(0, 4))) for _ in range(300)]
    values = [None if chosen.random() < 0.1 else text for text in texts]
    batch = pa.record_batch({"t": pa.array(values, pa.string()).cast(kind)})
    for start in (0, 1, 100):
        assert lines_of(batch.slice(start, 150), "csv") == ["t", *map(csv_field, values[start : start + 150])]


def test_small_batches_whose_dictionaries_do_not_fit_together(tmp_path: Path) -> None:
    """Batches for a file are joined before they are converted. These two have 200 values, and int8 counts 128."""
    texts = [[f"{letter}{number}" for number in range(100)] for letter in "ab"]
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [pa.record_batch({"t": pa.array(each).cast(kind)}) for each in texts]
    path = tmp_path / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        assert write(batches[0].schema, batches, out, "csv") == 200
    assert path.read_text().splitlines() == ["t", *texts[0], *texts[1]]


@pytest.mark.parametrize("scale", range(-2, 9))
def test_decimals_are_written_without_an_exponent(scale: int) -> None:
    values = [Decimal(value).scaleb(-scale) for value in (0, 1, -1, 123456)]
    batch = pa.record_batch({"d": pa.array(values, pa.decimal128(20, scale))})
    assert lines_of(batch, "csv") == ["d", *(f"{value:f}" for value in batch.column("d").to_pylist())]


def test_csv_in_a_file_follows_what_was_written_before(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        for text in ("é", "b"):
            write(pa.schema({"t": pa.string()}), [pa.record_batch({"t": [text]})], out, "csv")
        out.write("end\n")
    assert path.read_text(encoding="utf-8") == "t\né\nt\nb\nend\n"
