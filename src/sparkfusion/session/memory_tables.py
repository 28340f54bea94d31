"""In-memory tables by reference: tasks read their rows from files, written once for each version of a table.

DataFusion encodes the rows of such a table with every plan that scans it. So in queries the name of a large table means
a view: a union of its rows in memory and the rows of its files, of which a function selects one. DataFusion evaluates
the function while it plans, and drops the other half. A plan for a single node keeps the rows in memory, a plan for
tasks keeps the files.

The function belongs to one table, and is in every plan that reads the table. So the files can be removed when the table
is gone from the catalog and the last of these plans is gone.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from datafusion import DataFrame, SessionContext, lit, udf
from datafusion.catalog import Table
from datafusion.plan import ExecutionPlan

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, file_scan_conf, walk
from sparkfusion.session.memory_files import TableFiles, fits, remove_with, write_version
from sparkfusion.session.memory_rows import leaves, memory_bytes, whole_batches
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.spool import TableSpool
from sparkfusion.session.sql_names import is_plain_name
from sparkfusion.session.sql_text import mask

_CREATES = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?TABLE\b", re.IGNORECASE)
_HAS_KEY = re.compile(r"\b(?:PRIMARY\s+KEY|UNIQUE)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"\s*(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|DROP|ALTER|CREATE\s+(OR\s+REPLACE\s+)?TABLE)\b", re.IGNORECASE
)


class Reference:
    """An in-memory table, and the files of the last version that was written. Plans of its view hold it.

    It must not hold the view: Python's garbage collection does not see what is inside a plan.
    """

    def __init__(self, number: int, table: Table) -> None:
        self.number = number
        self.table = table
        self.fits = fits(table.schema)
        self.shown = ""
        self.bytes = 0
        self.version = 0
        self.files: TableFiles | None = None
        self.batches: list[pa.RecordBatch] = []
        self.links = Path()

    def size(self) -> int:
        """About how many bytes it has now. DataFusion's display of the table changes with its number of batches."""
        (scan,) = leaves(_scan(self.table))
        if scan.display() != self.shown:
            self.shown, self.bytes = scan.display(), memory_bytes(scan) or 0
        return self.bytes


@dataclass
class _Named:
    """What a table's name in the catalog stands for. The view is made when a query needs it."""

    reference: Reference
    view: Table | None = None


class MemoryTables:
    """The in-memory tables of a session's own schema. Any thread may call any method."""

    def __init__(self, schema: SessionSchema) -> None:
        self._schema = schema
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._by_name: dict[str, _Named] = {}
        self._planning = threading.local()
        self._spool = TableSpool()
        self._links: OwnedDirectory | None = None
        self._closed = False
        schema.forget_in(self._by_name)

    def adopt(self, names: Iterable[str]) -> None:
        """Check tables that were just made, and remember those that are in memory."""
        with self._lock:
            for name in names:
                table = self._schema.own(name)
                scans = list(leaves(_scan(table))) if table is not None else []
                if table is not None and len(scans) == 1 and memory_bytes(scans[0]) is not None:
                    self._by_name[name] = _Named(Reference(next(self._numbers), table))

    @contextmanager
    def remember_tables_of(self, statement: str) -> Iterator[None]:
        """Remember the tables in memory that a statement makes. A table with a key is not shown as a view: DataFusion
        plans some queries by the key, and a view has none."""
        masked = mask(statement)
        if _CREATES.match(masked) is None or _HAS_KEY.search(masked):
            yield
            return
        before = {name: self._schema.own(name) for name in self._schema.names()}
        yield
        self.adopt(name for name in self._schema.names() if self._schema.own(name) is not before.get(name))

    def views(self, text: str, threshold: int) -> dict[str, Table]:
        """What names in this query mean: a view, for tables of more than `threshold` bytes."""
        found: dict[str, Table] = {}
        if self._closed or _CHANGES.match(mask(text)):
            return found
        with self._lock:
            for name, named in list(self._by_name.items()):
                reference = named.reference
                if self._schema.own(name) is not reference.table:
                    self._by_name.pop(name, None)
                elif reference.fits and name.lower() in text.lower() and reference.size() > threshold:
                    named.view = named.view or Table(self._by_reference(name, reference))
                    if named.view.schema == reference.table.schema:
                        found[name] = named.view
        return found

    def dataframe_of(self, rows: pa.Table, threshold: int) -> DataFrame:
        """A DataFrame of rows that have no name in the catalog."""
        dataframe = SessionContext().from_arrow(rows)
        with self._lock:
            reference = Reference(next(self._numbers), Table(dataframe))
            if self._closed or not reference.fits or reference.size() <= threshold:
                return dataframe
            made = self._by_reference("cached_rows", reference)
            return made if made.schema() == dataframe.schema() else dataframe

    @contextmanager
    def notice_references(self) -> Iterator[set[Reference]]:
        """The tables whose view is used while this thread plans a query."""
        self._planning.seen = seen = set[Reference]()
        try:
            yield seen
        finally:
            del self._planning.seen

    @contextmanager
    def in_files(self, references: set[Reference], directory: str) -> Iterator[list[TableFiles]]:
        """Let these tables be scans of their files in plans that this thread makes. The files must outlive the plan."""
        with self._lock:
            files = [self._write(reference, directory) for reference in references]
            self._planning.files = references
        try:
            yield files
        finally:
            del self._planning.files

    def point_to_versions(self, root: PlanNode, files: Iterable[TableFiles]) -> None:
        """Let scans name the files of a version, which do not change, in place."""
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

    def _by_reference(self, name: str, reference: Reference) -> DataFrame:
        if self._links is None:
            self._links = OwnedDirectory("table-links", Path(tempfile.gettempdir()))
        home = reference.links = self._links.path.resolve() / str(reference.number)
        home.mkdir()
        remove_with(reference, home)
        shown = name if is_plain_name(name) else "memory_table"
        rows, files = SessionContext(), SessionContext()  # one each, so that both may have the name
        rows.register_table(shown, reference.table)
        files.register_parquet(shown, str(home), schema=reference.table.schema)
        tell = partial(_tell_where, self._planning, reference)
        here = udf(tell, [pa.int64()], pa.bool_(), "immutable", "rows_are_here")(lit(reference.number))
        return rows.table(shown).filter(here).union(files.table(shown).filter(~here))

    def _write(self, reference: Reference, directory: str) -> TableFiles:
        plan = _scan(reference.table)
        counts = range(plan.partition_count)
        batches = [batch.to_pyarrow() for part in counts for batch in whole_batches().execute(plan, part)]
        if reference.files is None or list(map(_identity, batches)) != list(map(_identity, reference.batches)):
            reference.version += 1
            home = self._spool.directory(directory) / f"{reference.number}-{reference.version}"
            reference.files = write_version(home, batches, reference.table.schema, reference.links)
            reference.batches = batches  # as long as they are kept, no others are where they are
        return reference.files


def _tell_where(planning: threading.local, reference: Reference, numbers: pa.Array) -> pa.Array:
    """Whether the plan that this thread makes reads the rows of a table in memory."""
    getattr(planning, "seen", set[Reference]()).add(reference)
    return pa.array([reference not in getattr(planning, "files", ())] * len(numbers))


def _scan(table: Table) -> ExecutionPlan:
    dataframe: DataFrame = whole_batches().read_table(table)
    return dataframe.execution_plan()


def _identity(batch: pa.RecordBatch) -> tuple[object, ...]:
    """Where a batch is in memory. Two different batches that exist at the same time differ in this."""
    columns = (
        (len(column), column.offset, *(buffer.address if buffer is not None else 0 for buffer in column.buffers()))
        for column in batch.columns
    )
    return (batch.num_rows, *columns)
