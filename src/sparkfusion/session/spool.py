"""In-memory tables that are too big to travel inside a plan are written once and scanned from files (trap 21)."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pyarrow as pa

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, kind, rewrite
from sparkfusion.plan.wire.build import arrow_scan


class TableSpool:
    """Files of one session, one for each distinct partition of rows, kept until the session closes.

    Used under the planner's lock.
    """

    def __init__(self) -> None:
        self._home: OwnedDirectory | None = None

    def spool(self, root: PlanNode, threshold: int, directory: str) -> PlanNode:
        """Replace every in-memory scan of more than `threshold` bytes by a scan of files, in place."""
        return rewrite(root, lambda node: self._replacement(node, threshold, directory))

    def close(self) -> None:
        if self._home is not None:
            self._home.close()
            self._home = None

    def _replacement(self, node: PlanNode, threshold: int, directory: str) -> PlanNode | None:
        if kind(node) != "memory_scan" or node.memory_scan.sort_information:
            return None
        scan = node.memory_scan
        if sum(len(rows) for rows in scan.partitions) <= threshold:
            return None
        made = arrow_scan(scan.schema, 0)
        conf = made.arrow_scan.base_conf
        conf.projection.extend(scan.projection)
        if scan.HasField("fetch"):
            conf.limit.limit = scan.fetch
        for rows in scan.partitions:
            path = self._write(rows, directory)
            conf.file_groups.add().files.add(path=object_path(str(path)), size=path.stat().st_size)
        return made

    def _write(self, rows: bytes, directory: str) -> Path:
        if self._home is None:
            self._home = OwnedDirectory("tables", Path(directory or tempfile.gettempdir()))
        path = self._home.path / f"{hashlib.blake2b(rows, digest_size=16).hexdigest()}.arrow"
        if path.exists():
            return path
        part = path.with_suffix(".part")
        with pa.ipc.open_stream(rows) as reader, pa.ipc.new_file(str(part), reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        part.rename(path)
        return path
