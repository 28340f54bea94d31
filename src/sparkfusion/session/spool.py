"""In-memory tables too large for a plan are written to files once (docs/traps.md#memory-tables-inside-plans)."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
import weakref
from pathlib import Path

import pyarrow as pa

from sparkfusion.exchange.frames import has_dictionaries
from sparkfusion.exchange.owned import OwnedDirectory, check_store
from sparkfusion.plan.map_types import restore_declared_maps
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, kind, rewrite
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import arrow_scan
from sparkfusion.session.memory_files import remove_with

_NO_COLUMNS = 2**32 - 1  # how the format spells a projection to no column at all

_Rows = tuple[bytes, tuple[int, ...]]
"""A digest of rows, and the columns of them."""


class SpooledFile:
    """The file of a partition's rows. It is removed when no object refers to this any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        remove_with(self, path)


class TableSpool:
    """Files of one session, one for each distinct partition of rows. Plans hold their files; those of the last plan are
    kept.

    Used under the planner's lock.
    """

    def __init__(self) -> None:
        self._home: OwnedDirectory | None = None
        self._numbers = itertools.count(1)
        self._files: weakref.WeakValueDictionary[_Rows, SpooledFile] = weakref.WeakValueDictionary()
        self._last: tuple[SpooledFile, ...] = ()

    def spool(self, root: PlanNode, threshold: int, directory: str) -> tuple[SpooledFile, ...]:
        """Replace in-memory scans of more than `threshold` bytes by scans of files, in place. Returns the files."""
        files: list[SpooledFile] = []
        rewrite(root, lambda node: self._replacement(node, threshold, directory, files))
        self._last = tuple(files) or self._last
        return tuple(files)

    def close(self) -> None:
        self._last = ()
        if self._home is not None:
            self._home.close()
            self._home = None

    def _replacement(self, node: PlanNode, threshold: int, directory: str, files: list[SpooledFile]) -> PlanNode | None:
        if kind(node) != "memory_scan" or node.memory_scan.sort_information:
            return None
        scan = node.memory_scan
        if list(scan.projection) in ([], [_NO_COLUMNS]):
            return None
        if sum(len(rows) for rows in scan.partitions) <= threshold:
            return None
        columns = pb.Schema.FromString(scan.schema).columns
        projected = pb.Schema(columns=[columns[index] for index in scan.projection])
        made = arrow_scan(projected.SerializeToString(), len(scan.projection))
        conf = made.arrow_scan.base_conf
        if scan.HasField("fetch"):
            conf.limit.limit = scan.fetch
        if computed := self._computed_columns(scan, projected):
            conf.projection_exprs = computed
        for rows in scan.partitions:
            group = conf.file_groups.add()
            if rows:
                file = self._write(rows, list(scan.projection), directory)
                files.append(file)
                group.files.add(path=object_path(str(file.path)), size=file.path.stat().st_size)
        return made

    def _computed_columns(self, scan: pb.MemoryScan, projected: pb.Schema) -> bytes:
        rows = next(filter(None, scan.partitions))
        with pa.ipc.open_stream(rows) as reader:
            written = pa.schema([reader.schema.field(index) for index in scan.projection])
        return restore_declared_maps(projected, written)

    def _write(self, rows: bytes, projection: list[int], directory: str) -> SpooledFile:
        """The file of these columns of these rows, written if there is none yet."""
        key = hashlib.blake2b(rows, digest_size=16).digest(), tuple(projection)
        file = self._files.get(key)
        if file is None:
            path = self.directory(directory) / f"{next(self._numbers)}.arrow"
            with pa.ipc.open_stream(rows) as reader:
                table = reader.read_all().select(projection)
            file = SpooledFile(path)
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table.unify_dictionaries() if has_dictionaries(table.schema) else table)
            self._files[key] = file
        return file

    def directory(self, directory: str) -> Path:
        if self._home is None:
            base = Path(directory or tempfile.gettempdir()).absolute()
            check_store(base, "in-memory tables")
            self._home = OwnedDirectory("tables", base)
        return self._home.path
