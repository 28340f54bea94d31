"""What a worker accepts: sizes, files below allowed directories and, if it was started so, Python functions."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import unquote

from sparkfusion.config import MIB
from sparkfusion.errors import PlanTooLargeError, ProtocolError, UserError, WireFormatError
from sparkfusion.exchange.owned import DIRECTORY_PREFIX, LOCK
from sparkfusion.feed.feed import UnitSource
from sparkfusion.feed.unit_codec import is_compressed, unpack
from sparkfusion.feed.units import FileUnit
from sparkfusion.plan.feed_scans import is_fed
from sparkfusion.plan.sources import placeholder_of
from sparkfusion.plan.wire import PlanNode, decode, file_scan_conf, walk
from sparkfusion.plan.wire.depth import check_depth
from sparkfusion.plan.wire.survey import UnknownPlanError, functions_in
from sparkfusion.urls import LOCAL_STORE, is_url, plain_path
from sparkfusion.worker.server.shape import check_rows, check_shape, check_sources
from sparkfusion.worker.task import TaskOrder

_REMOTE_STORE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://[^\s/]+/?")
_CATALOG = "datafusion.catalog.location"  # the only option of a session that names a directory
FUNCTIONS_REFUSED = "this worker does not run Python functions"
TRUST = "start the workers with --trust-python, if you trust everyone who has their token"


@dataclass(frozen=True)
class Limits:
    """The largest sizes and numbers that a worker accepts.

    Attributes:
        plan_bytes: of one plan. `message_bytes`: of one message, for example an order with its functions.
        outputs: output partitions of a task. `input_files`: files that one task reads.
        unit_bytes: of the units that a task is given at once, unpacked.
        queries: held at the same time. `waiting`: tasks that wait for a slot.
    """

    plan_bytes: int = 64 * MIB
    message_bytes: int = 256 * MIB
    outputs: int = 100_000
    input_files: int = 1_000_000
    unit_bytes: int = 64 * MIB
    queries: int = 1_000
    waiting: int = 10_000


@dataclass(frozen=True)
class Guard:
    """Checks orders before any part of them is used.

    Attributes:
        roots: directories below which tasks may read and write files. If there are none, tasks may use every file that
            the worker's user may use.
    """

    limits: Limits = Limits()
    roots: tuple[Path, ...] = ()
    trust_python: bool = False

    def check(self, order: TaskOrder) -> None:
        """Raise if the order must not be carried out."""
        limits = self.limits
        if len(order.plan) > limits.plan_bytes:
            raise PlanTooLargeError(f"a plan of {len(order.plan):,} bytes is over the limit of {limits.plan_bytes:,}")
        if not 0 < order.outputs <= limits.outputs:
            raise ProtocolError(f"a task cannot have {order.outputs:,} output partitions")
        if sum(len(each.files) for each in order.inputs) > limits.input_files:
            raise ProtocolError(f"a task reads more than {limits.input_files:,} files")
        check_shape(order)
        if not self.trust_python:
            self._check_functions(order)
        root = self._check_format(order.plan)
        if self.roots:
            self._check_scans(root, order)
        check_sources(root, order)
        check_rows(root)
        self._check_options(order.options)
        if order.writes is not None:
            self._check_staging(Path(order.writes.staging))
            self._check_options(order.writes.options)

    def check_path(self, path: str, verb: str = "read") -> None:
        if self.roots and not self.allows(path):
            raise UserError(
                f"this worker may not {verb} {path!r}",
                hint=f"it was started with --allow-root {', '.join(map(str, self.roots))}",
            )

    def allows(self, path: str) -> bool:
        """Whether a path is below an allowed directory. Links are followed, and the path is also checked with its
        percent signs decoded."""
        forms = (Path(path).resolve(), Path(unquote(path)).resolve())
        return not self.roots or all(any(form.is_relative_to(root) for root in self.roots) for form in forms)

    def units(self, units: UnitSource) -> UnitSource:
        """The same units, each checked when it comes."""
        return _CheckedUnits(units, self)

    def _check_format(self, plan: bytes) -> PlanNode:
        """The decoded plan. Raises if it has a field that our description of the wire format does not have."""
        try:
            check_depth(plan)
            functions = functions_in(plan)
            root = decode(plan)
        except (UnknownPlanError, WireFormatError) as error:
            raise ProtocolError(error.message) from None
        if functions and not self.trust_python:
            raise UserError(FUNCTIONS_REFUSED, hint=TRUST)
        return root

    def _check_functions(self, order: TaskOrder) -> None:
        if order.reader is not None:
            table = order.feed.table if order.feed is not None else ""
            raise UserError(
                f"the reader of table {table!r} is a Python function, which this worker does not run", hint=TRUST
            )
        if order.recipe is not None:
            raise UserError("object stores are made by Python functions, which this worker does not run", hint=TRUST)

    def _check_options(self, options: Mapping[str, str]) -> None:
        """Options of the runtime (memory, directories, caches) are not checked: the worker uses its own."""
        if options.get(_CATALOG):
            self.check_path(options[_CATALOG])

    def _check_staging(self, staging: Path) -> None:
        """Raise unless the staging directory is inside a directory that a coordinator made for a query."""
        self.check_path(str(staging), "write to")
        home = staging.parent
        if not staging.is_absolute() or not home.name.startswith(DIRECTORY_PREFIX) or not (home / LOCK).is_file():
            raise UserError(f"this worker may not write to {str(staging)!r}: it is not the output directory of a query")

    def _check_scans(self, root: PlanNode, order: TaskOrder) -> None:
        given = {(each.exchange, each.group) for each in order.inputs}
        for conf in filter(None, map(file_scan_conf, walk(root))):
            url = conf.object_store_url
            if url != LOCAL_STORE and not _REMOTE_STORE.fullmatch(url):
                raise ProtocolError(f"this worker knows no object store {url!r}")
            for file in (file for group in conf.file_groups for file in group.files):
                replaced = placeholder_of(file.path) in given or (order.feed is not None and is_fed(file))
                if url == LOCAL_STORE and not replaced:
                    self.check_path(f"/{file.path}")


class _Open(Guard):
    """A guard that accepts everything."""

    def check(self, order: TaskOrder) -> None:
        del order

    def units(self, units: UnitSource) -> UnitSource:
        return units


OPEN = _Open(Limits(*[sys.maxsize] * len(fields(Limits))), trust_python=True)
"""For a worker in this process. It accepts everything: the process could run any of it itself."""


def named_refusal(message: str) -> str | None:
    """The message for a plan with a Python function that DataFusion refused to unpickle; None for any other error."""
    return FUNCTIONS_REFUSED if "Refusing to deserialize inline Python" in message else None


class _CheckedUnits:
    def __init__(self, units: UnitSource, guard: Guard) -> None:
        self._units = units
        self._guard = guard
        self.report_failure = units.report_failure
        self.enough = units.enough

    def take(self, offset: int) -> bytes | None:
        data = self._units.take(offset)
        if data is None:
            return None
        _check_size(data, self._guard.limits.unit_bytes)
        if self._guard.roots:
            self._check_paths(data)
        return data

    def _check_paths(self, data: bytes) -> None:
        units = unpack(data, trust_python=self._guard.trust_python)
        for path in (unit.path for unit in units if isinstance(unit, FileUnit)):
            if not is_url(path) or path.startswith("file:"):
                self._guard.check_path(plain_path(path))


def _check_size(data: bytes, limit: int) -> None:
    if not is_compressed(data):
        if len(data) > limit:
            raise ProtocolError(f"one reply contains more than {limit:,} bytes of work units")
        return
    try:
        unpacker = zlib.decompressobj()
        unpacker.decompress(data, limit)
    except zlib.error:
        raise ProtocolError("invalid work units") from None
    if unpacker.unconsumed_tail:
        raise ProtocolError(f"one reply contains more than {limit:,} bytes of work units")
