"""The same tables twice: registered as files, and fed. `verify` compares the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq

from sparkfusion import DataFrame, FeedContext, FileUnit, Session, WorkUnitFeedProvider
from sparkfusion.observe.events import Subscriber
from sparkfusion.plan.stage import Distribution
from sparkfusion.verify.own_session import OwnDataFrame
from sparkfusion.verify.subject import VerifiableDataFrame


class FilesOf(WorkUnitFeedProvider):
    """The Parquet files of a directory, by name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        for path in sorted(self._directory.iterdir()):
            yield FileUnit(str(path), path.stat().st_size)

    def schema(self) -> pa.Schema:
        return pq.read_schema(next(self._directory.iterdir()))


class RowGroupsOf(FilesOf):
    """Every row group of the files is a unit of its own."""

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        for file in super().feed(partition, context):
            metadata = pq.read_metadata(file.path)
            starts = [_start(metadata.row_group(index).column(0)) for index in range(metadata.num_row_groups)]
            for start in starts:
                yield FileUnit(file.path, file.size, range=(start, start + 1))


def _start(column: Any) -> int:
    """Where a row group begins, which is how DataFusion tells to which range it belongs."""
    offset: int = column.dictionary_page_offset or column.data_page_offset
    return offset


def register_fed(session: Session, tables: Path) -> None:
    """Every directory below `tables` as a feed."""
    for directory in sorted(tables.iterdir()):
        session.register_feed(directory.name, FilesOf(directory), format="parquet")


class FedFrame:
    """A query over both: what is expected comes from plain files, what is tested from feeds."""

    def __init__(self, plain: DataFrame, fed: DataFrame) -> None:
        self._plain = plain
        self._fed = fed

    def to_datafusion(self) -> datafusion.DataFrame:
        return self._plain.to_datafusion()

    def only_distributed(self) -> str | None:
        return OwnDataFrame(self._plain).only_distributed()

    def round_trip(self) -> pa.Table:
        return OwnDataFrame(self._plain).round_trip()

    def collect(self) -> pa.Table:
        return self._fed.collect()

    def distribution(self) -> Distribution:
        return self._fed.distribution()

    def explain_text(self) -> str:
        return self._fed.explain_text()


class FedSession:
    """Two sessions as `verify` sees one."""

    def __init__(self, plain: Session, fed: Session) -> None:
        self._plain = plain
        self._fed = fed
        self.context = plain.context

    def sql(self, query: str, param_values: Mapping[str, Any] | None = None, /) -> VerifiableDataFrame:
        return FedFrame(self._plain.sql(query, param_values), self._fed.sql(query, param_values))

    def subscribe(self, subscriber: Subscriber, /) -> Callable[[], None]:
        return self._fed.subscribe(subscriber)

    @property
    def config(self) -> Any:
        return self._fed.config
