"""A feed as a query declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import Reader, ScanRequest
from sparkfusion.ids import FeedId


@dataclass(frozen=True)
class FeedDeclaration:
    """One scan of a feed in one query: what the coordinator needs to run it, and what tasks need to read it.

    Attributes:
        files: whether units are files; otherwise `reader` turns them into rows, in the tasks.
        partitions: None for a shared feed.
        tasks: how many tasks read it.
    """

    feed: FeedId
    table: str
    source: WorkUnitFeed
    files: bool
    schema: pa.Schema
    request: ScanRequest
    tasks: int
    partitions: int | None = None
    partition_columns: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    reader: Reader | None = None
