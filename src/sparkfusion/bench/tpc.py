"""TPC-H and TPC-DS: data and queries of both suites. Neither is in this repository.

The data comes from `tpcgen-cli`, the query texts from DuckDB's `tpch` and `tpcds` extensions, which PyPI carries as
`duckdb-extension-*`; both work without a network. They are in the extra `bench`. Used by `sparkfusion bench`, the
tests, the benchmarks and the demo.
"""

from __future__ import annotations

import importlib.resources
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from sparkfusion.errors import ExternalError, UserError
from sparkfusion.extras import import_extra

DATA = Path("data")
"""Where benchmarks of this repository keep generated tables, below the current directory."""

EXTRA = "bench"


class ParquetRegistry(Protocol):
    """Registers tables: a sparkfusion session or a DataFusion context."""

    def register_parquet(self, name: str, path: str) -> Any: ...


@dataclass(frozen=True)
class Suite:
    """One of the suites.

    Attributes:
        name: its name for tpcgen-cli and DuckDB.
        query_count: how many queries it has, numbered from 1.
        substitutions: for each query that DataFusion cannot read as it is, pairs of text to replace. DataFusion 55
            runs all 22 and all 99 unchanged, so there are none.
    """

    name: str
    query_count: int
    substitutions: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The usual name, such as TPC-H."""
        return f"{self.name[:3]}-{self.name[3:]}".upper()

    def queries(self) -> dict[int, str]:
        """All query texts by number, in DataFusion's dialect."""
        return {number: self._adapt(number, text) for number, text in _query_texts(self.name).items()}

    def choose(self, numbers: str = "") -> list[tuple[int, str]]:
        """The queries with these comma-separated numbers; all queries if it is empty."""
        texts = self.queries()
        by_number = {str(number): number for number in sorted(texts)}
        wanted = [number.strip() for number in numbers.split(",")] if numbers else list(by_number)
        if unknown := [number for number in wanted if number not in by_number]:
            raise UserError(
                f"{self.title} has no query {unknown[0]!r}",
                hint=f"its queries are 1 to {self.query_count}; write numbers with commas between them, such as 1,3,6",
            )
        return [(by_number[number], texts[by_number[number]]) for number in wanted]

    def prepare(self, scale: float, below: Path = DATA, say: Callable[[str], None] = print) -> Path:
        """Generate the tables of a scale below a directory, unless they are there, and return their directory. Each
        table is one file, as in many exports of users.

        `say` is called before they are generated. Tables of an interrupted run are generated again.
        """
        directory = below / f"{self.name}-{scale:g}"
        if not directory.exists():
            say(f"generating {self.title} at scale factor {scale:g} in {directory} …")
            part = directory.with_name(f"{directory.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            self.generate(part, scale, files=1)
            part.rename(directory)
        return directory

    def generate(self, directory: str | Path, scale: float, *, files: int = 3) -> None:
        """Write the tables as Parquet, each into a directory of its own below `directory`, in about `files` files.

        TPC-DS's smallest scale is 0.01 (31 MB, 1.5 seconds; anything below gives the same tables, because the date,
        time and demographics dimensions do not scale). At 0.01, 16 of its queries find no rows; at 1, none.
        """
        command = [str(_generator()), self.name, "parquet", "--scale-factor", str(scale), "--parts", str(files)]
        command += ["--output-dir", str(directory), "--quiet", "--no-progress"]
        ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if ended.returncode != 0:
            raise ExternalError(
                f"{self.title} at scale factor {scale:g} could not be generated in {str(directory)!r}: "
                f"{ended.stderr.strip()[-500:] or f'tpcgen-cli ended with {ended.returncode}'}",
                hint="look for room on the disk and for permission to write there",
            )
        for table in self.tables(directory):
            _split_single_file(Path(directory) / table, files)

    def tables(self, directory: str | Path) -> list[str]:
        """The names of the tables that `generate` wrote."""
        return sorted(path.name for path in Path(directory).iterdir() if path.is_dir())

    def register(self, registry: ParquetRegistry, directory: str | Path) -> None:
        """Register the generated tables."""
        for table in self.tables(directory):
            registry.register_parquet(table, str(Path(directory) / table))

    def _adapt(self, number: int, text: str) -> str:
        for old, new in self.substitutions.get(number, ()):
            if old not in text:
                raise ValueError(f"{self.name} query {number} has no {old!r} to replace")
            text = text.replace(old, new)
        return text


TPCH = Suite("tpch", 22)
TPCDS = Suite("tpcds", 99)
SUITES = {suite.name: suite for suite in (TPCH, TPCDS)}


@cache
def _query_texts(suite: str) -> dict[int, str]:
    duckdb = import_extra("duckdb", EXTRA, "a TPC benchmark")
    import_extra(f"duckdb_extension_{suite}", EXTRA, "a TPC benchmark")
    package = importlib.resources.files(f"duckdb_extension_{suite}")
    extension = package / "extensions" / f"v{duckdb.__version__}" / f"{suite}.duckdb_extension"
    if not extension.is_file():
        raise UserError(
            f"the queries of {suite} cannot be read: duckdb-extension-{suite} does not match DuckDB "
            f"{duckdb.__version__}",
            hint=f"pip install duckdb-extension-{suite}=={duckdb.__version__}",
        )
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        connection.load_extension(str(extension))
        rows = connection.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY query_nr").fetchall()
    return {int(number): str(text).rstrip().removesuffix(";") for number, text in rows}


def _generator() -> Path:
    """The tpcgen-cli of this Python environment."""
    places = (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent)
    found = next((place / "tpcgen-cli" for place in places if (place / "tpcgen-cli").exists()), None)
    if found is None:
        raise UserError(
            "a TPC benchmark needs tpcgen-cli, which is not installed",
            hint=f"pip install tpcgen-cli, or pip install 'sparkfusion[{EXTRA}]'",
        )
    return found


def _split_single_file(directory: Path, files: int) -> None:
    """Divide a table that came as one file: tpcgen-cli leaves TPC-DS tables of less than a million rows whole."""
    paths = sorted(directory.iterdir())
    if files == 1 or len(paths) != 1:
        return
    table = pq.read_table(paths[0])
    if table.num_rows < 2 * files:
        return
    rows = -(-table.num_rows // files)
    for number in range(files):
        piece = table.slice(number * rows, rows)
        # Decimals are integers in the files, as tpcgen-cli, Spark and DuckDB write them; byte arrays decode slower.
        pq.write_table(piece, directory / f"{directory.name}.{number + 1}.parquet", store_decimal_as_integer=True)
