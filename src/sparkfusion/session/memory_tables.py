"""In-memory tables by reference: tasks read their rows from files, written once for each version of a table.

DataFusion encodes the rows of such a table with every plan that scans it. So in queries the name of a large one means
a view: its rows in memory, or those of its files, whichever a function says. DataFusion evaluates the function while it
plans, and drops the other half. On a single node the rows in memory are left, in a plan for tasks the files.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import DataFrame, SessionContext, lit, udf
from datafusion.catalog import Table
from datafusion.plan import ExecutionPlan

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, file_scan_conf, walk
from sparkfusion.session.memory_rows import leaves, memory_bytes, whole_batches
from sparkfusion.session.query import conform
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.spool import TableSpool

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_CREATES = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?TABLE\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|DROP|ALTER|CREATE\s+(OR\s+REPLACE\s+)?TABLE)\b", re.IGNORECASE
)
_ROW_GROUP = 1 << 16
_MOST_FILES = 16


class TableFiles:
    """The rows of one version of a table. They are removed when the session and all queries that read them let go.

    Attributes:
        links: where plans are made to look for each file, until the next version is there instead.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.links: dict[Path, Path] = {}
        weakref.finalize(self, _remove, directory, os.getpid())


class _Reference:
    """An in-memory table, and the files of its last version that was written."""

    def __init__(self, number: int, table: Table) -> None:
        self.number = number
        self.table = table
        self.fits = _fits(table.schema)
        self.view: Table | None = None
        self.shown = ""
        self.bytes = 0
        self.version = 0
        self.files: TableFiles | None = None
        self.batches: list[pa.RecordBatch] = []
        self.links = Path()

    def size(self) -> int:
        """About its bytes, now. What DataFusion shows of it changes with its count of batches."""
        (scan,) = leaves(_scan(self.table))
        if scan.display() != self.shown:
            self.shown, self.bytes = scan.display(), memory_bytes(scan) or 0
        return self.bytes


class MemoryTables:
    """The in-memory tables of a session's own schema. Any thread may call it."""

    def __init__(self, schema: SessionSchema) -> None:
        self._schema = schema
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._by_name: dict[str, _Reference] = {}
        self._planning = threading.local()
        self._rows_here = udf(self._tell_where, [pa.int64()], pa.bool_(), "immutable", "rows_are_here")
        self._spool = TableSpool()
        self._links: OwnedDirectory | None = None
        self._closed = False

    def adopt(self, names: Iterable[str]) -> None:
        """Look at tables that were just made, and remember those that are in memory."""
        with self._lock:
            for name in names:
                table = self._schema.own(name)
                scans = list(leaves(_scan(table))) if table is not None else []
                if table is not None and len(scans) == 1 and memory_bytes(scans[0]) is not None:
                    self._by_name[name] = _Reference(next(self._numbers), table)

    @contextmanager
    def made_by(self, statement: str) -> Iterator[None]:
        """Remember the tables in memory that a statement makes."""
        if _CREATES.match(statement) is None:
            yield
            return
        before = {name: self._schema.own(name) for name in self._schema.names()}
        yield
        self.adopt(name for name in self._schema.names() if self._schema.own(name) is not before.get(name))

    def views(self, text: str, threshold: int) -> dict[str, Table]:
        """What names in this query shall mean: a view, for tables of more than `threshold` bytes."""
        found: dict[str, Table] = {}
        if self._closed or _CHANGES.match(text):
            return found
        with self._lock:
            for name, reference in list(self._by_name.items()):
                if self._schema.own(name) is not reference.table:
                    del self._by_name[name]  # with its rows
                elif reference.fits and name.lower() in text.lower() and reference.size() > threshold:
                    reference.view = reference.view or self._view(name, reference)
                    if reference.view.schema == reference.table.schema:
                        found[name] = reference.view
        return found

    @contextmanager
    def noticing(self) -> Iterator[set[int]]:
        """The tables whose view is met while this thread plans a query."""
        self._planning.seen = seen = set[int]()
        try:
            yield seen
        finally:
            self._planning.seen = set()

    @contextmanager
    def in_files(self, numbers: set[int], directory: str) -> Iterator[list[TableFiles]]:
        """Let these tables be scans of their files, in plans that this thread makes. The plan needs the files."""
        with self._lock:
            references = [each for each in self._by_name.values() if each.number in numbers]
            files = [self._written(reference, directory) for reference in references]
            self._planning.files = {reference.number for reference in references}
        try:
            yield files
        finally:
            self._planning.files = set()

    def point_to_versions(self, root: PlanNode, files: Iterable[TableFiles]) -> None:
        """Let scans name the files of a version, which stay, in place."""
        links = (link for each in files for link in each.links.items())
        paths = {object_path(str(link)): object_path(str(path)) for link, path in links}
        for node in walk(root):
            conf = file_scan_conf(node)
            for group in conf.file_groups if conf is not None else ():
                for file in group.files:
                    file.path = paths.get(file.path, file.path)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._by_name.clear()
            self._spool.close()
            if self._links is not None:
                self._links.close()

    def _tell_where(self, numbers: pa.Array) -> pa.Array:
        number = numbers[0].as_py()
        getattr(self._planning, "seen", set()).add(number)
        return pa.array([number not in getattr(self._planning, "files", ())] * len(numbers))

    def _view(self, name: str, reference: _Reference) -> Table:
        if self._links is None:
            self._links = OwnedDirectory("table-links", Path(tempfile.gettempdir()))
        home = reference.links = self._links.path.resolve() / str(reference.number)
        home.mkdir()
        shown = name if _PLAIN.fullmatch(name) else "memory_table"
        rows, files = SessionContext(), SessionContext()  # one each, so that both may have the name
        rows.register_table(shown, reference.table)
        files.register_parquet(shown, str(home), schema=reference.table.schema)
        here = self._rows_here(lit(reference.number))
        return Table(rows.table(shown).filter(here).union(files.table(shown).filter(~here)))

    def _written(self, reference: _Reference, directory: str) -> TableFiles:
        plan = _scan(reference.table)
        counts = range(plan.partition_count)
        batches = [batch.to_pyarrow() for part in counts for batch in whole_batches().execute(plan, part)]
        if reference.files is None or list(map(_identity, batches)) != list(map(_identity, reference.batches)):
            reference.files = _write(reference, batches, self._spool.directory(directory))
            reference.batches = batches  # as long as they are kept, no others are where they are
        return reference.files


def _write(reference: _Reference, batches: list[pa.RecordBatch], directory: Path) -> TableFiles:
    """Write all rows, in their order, to several files: tasks share files, also where DataFusion would split none."""
    reference.version += 1
    made = TableFiles(directory / f"{reference.number}-{reference.version}")
    made.directory.mkdir()
    schema = reference.table.schema
    rows = pa.Table.from_batches([conform(batch, schema) for batch in batches], schema=schema)
    size = -(-rows.num_rows // max(2, min(_MOST_FILES, rows.num_rows // _ROW_GROUP)))
    for number, start in enumerate(range(0, rows.num_rows, size)):
        path = made.directory / f"{number:02d}.parquet"
        made.links[reference.links / f"{reference.version}-{path.name}"] = path
        part = rows.slice(start, size)
        pq.write_table(
            part, path, row_group_size=_ROW_GROUP, compression="none", use_dictionary=False, write_statistics=False
        )
    for old in reference.links.iterdir():
        old.unlink()
    for link, path in made.links.items():
        link.symlink_to(path)
    return made


def _scan(table: Table) -> ExecutionPlan:
    frame: DataFrame = whole_batches().read_table(table)
    return frame.execution_plan()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not take its parent's files away
        shutil.rmtree(path, ignore_errors=True)


def _identity(batch: pa.RecordBatch) -> tuple[object, ...]:
    """Where a batch is in memory. Two that are there at the same time and differ, differ in this."""
    columns = (
        (len(column), column.offset, *(buffer.address if buffer is not None else 0 for buffer in column.buffers()))
        for column in batch.columns
    )
    return (batch.num_rows, *columns)


def _fits(schema: pa.Schema) -> bool:
    """Whether Parquet gives back every value, and every type, as it was."""
    return len(schema) > 0 and all(_fits_type(field.type) and not field.metadata for field in schema)


def _fits_type(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or kind in (pa.float32(), pa.float64(), pa.bool_(), pa.date32())
        or kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
        or pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit in ("ms", "us", "ns"))
    )
