"""Feeds of a session: how they are registered, so that DataFusion can plan over them, and found in plans."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import datafusion
from datafusion import SessionContext

from sparkfusion.errors import UserError, clean_message
from sparkfusion.feed.feed import FeedDeclaration, WorkUnitFeed
from sparkfusion.ids import FeedId
from sparkfusion.plan.feed_scans import FeedScan, FeedTable, mark_feeds
from sparkfusion.plan.wire import PlanNode, encode, file_scan_conf, walk
from sparkfusion.plan.wire import decode as decode_plan
from sparkfusion.session.feed_options import FeedOptions
from sparkfusion.session.feed_requests import combine_requests, requests
from sparkfusion.session.placeholders import Placeholders
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.table_names import name_hint
from sparkfusion.worker.task_context import session_config

_PLACEHOLDER = b"-"
_PARTS = 2
_SCAN_OPTIONS = "datafusion.execution.parquet."
_STATISTICS = "datafusion.execution.collect_statistics"


class FeedTables:
    """The feeds of one session. Each is forgotten when its table is gone and no query reads it any more."""

    def __init__(self, schema: SessionSchema) -> None:
        self._placeholders = Placeholders("feeds", schema)
        self._numbers = itertools.count()
        self._feeds: dict[int, tuple[str, WorkUnitFeed, FeedOptions]] = {}
        self._notes: dict[int, str] = {}
        self._templates: dict[tuple[int, tuple[tuple[str, str], ...]], bytes] = {}

    def register(self, context: SessionContext, name: str, feed: WorkUnitFeed, options: FeedOptions) -> None:
        _template(name, options, {})  # what is wrong with the options is said now
        number = next(self._numbers)
        try:
            planned_as = self._placeholders.register(context, name, number, options.schema, _PARTS, self._forget)
        except Exception as error:
            words = clean_message(error)
            raise UserError(f"cannot register feed {name!r}: {words}", hint=name_hint(words, context)) from error
        self._feeds[number] = planned_as, feed, options

    def read(self, name: str, feed: WorkUnitFeed, options: FeedOptions, note: str = "") -> datafusion.DataFrame:
        """A feed without a table in the user's catalog. `note`: what `explain` says of it."""
        _template(name, options, {})
        number = next(self._numbers)
        place = self._placeholders.place
        planned_as, dataframe = place(SessionContext(), name, number, options.schema, _PARTS, self._forget)
        self._feeds[number] = planned_as, feed, options
        self._notes[number] = note
        return dataframe

    def describe(self, dataframe: datafusion.DataFrame) -> list[str]:
        """The notes of the feeds that a query reads."""
        found = [self._notes.get(number, "") for number in self._placeholders.tables_in(dataframe)]
        return [note for note in found if note]

    def _forget(self, table: int) -> None:
        self._feeds.pop(table, None)
        self._notes.pop(table, None)
        for key in list(self._templates):
            if key[0] == table:
                self._templates.pop(key, None)

    def refuse_writes(self, changed: Sequence[datafusion.DataFrame]) -> None:
        """Refuse a statement that changes a feed. `changed`: the tables that it changes."""
        for table in changed:
            if found := self.read_by(table):
                raise UserError(f"the table {', '.join(found)} is a feed, which cannot be written")

    def read_by(self, dataframe: datafusion.DataFrame) -> list[str]:
        """The names of feeds that DataFusion's own plan of the query reads."""
        if self._placeholders.home is None:
            return []
        text = dataframe.execution_plan().display_indent()
        home = str(self._placeholders.home).lstrip("/")
        return [name for number, (name, _, _) in list(self._feeds.items()) if f"{home}/{number}/" in text]

    def mark(
        self, root: PlanNode, tasks_for: Callable[[int], int], session_options: Mapping[str, str]
    ) -> tuple[FeedScan, ...]:
        """Turn scans of these tables into scans of feeds, in place.

        Args:
            tasks_for: the number of tasks for a number of bytes.
            session_options: the `datafusion.*` options of the session; those of file formats apply to scans.
        """
        if self._placeholders.home is None:
            return ()
        chosen = tuple((name, value) for name, value in session_options.items() if name.startswith(_SCAN_OPTIONS))
        return mark_feeds(root, str(self._placeholders.home), lambda table: self._feed_table(table, chosen), tasks_for)

    def _feed_table(self, table: int, session_options: tuple[tuple[str, str], ...]) -> FeedTable:
        name, _, options = self._feeds[table]
        key = table, session_options
        if key not in self._templates:
            self._templates[key] = _template(name, options, dict(session_options))
        return FeedTable(
            name, self._templates[key], options.partition_columns, options.tasks, options.partitions, options.bytes
        )

    def any_unsized(self, scans: tuple[FeedScan, ...]) -> bool:
        """Whether the size of one of these is unknown."""
        return any(self._feeds[scan.table][2].bytes is None for scan in scans)

    def small(self, scans: tuple[FeedScan, ...], most_bytes: int, most_rows: int) -> set[FeedId]:
        """The scans of tables that are known to be no larger than that."""
        found = set()
        for scan in scans:
            options = self._feeds[scan.table][2]
            sizes = ((options.bytes, most_bytes), (options.rows, most_rows))
            if any(size is not None for size, _ in sizes) and all(size is None or size <= most for size, most in sizes):
                found.add(scan.feed)
        return found

    def declare(self, scans: tuple[FeedScan, ...], plan: datafusion.LogicalPlan) -> tuple[FeedDeclaration, ...]:
        """The feeds that a query reads. `plan` is DataFusion's optimized plan."""
        tables = {scan.table for scan in scans}
        wanted = requests(plan, {self._feeds[table][0]: self._feeds[table][2].schema for table in tables})
        made = []
        for table in sorted(tables):
            name, feed, options = self._feeds[table]
            own = [scan for scan in scans if scan.table == table]
            for scan, request in zip(own, combine_requests(wanted[name], len(own)), strict=True):
                made.append(
                    FeedDeclaration(
                        feed=scan.feed,
                        table=name,
                        source=feed,
                        files=options.format is not None,
                        schema=options.schema,
                        request=replace(request, projection=scan.columns),
                        tasks=scan.tasks,
                        partitions=options.partitions,
                        partition_columns=options.partition_columns,
                        headers=options.headers,
                        reader=options.reader,
                    )
                )
        return tuple(made)

    def close(self) -> None:
        self._placeholders.close()


def _template(name: str, options: FeedOptions, session_options: Mapping[str, str]) -> bytes:
    """A scan of the feed's format as DataFusion encodes it, with the options that the user gave."""
    chosen = options.format or "arrow"
    context = SessionContext(session_config({**session_options, **options.scan_options, _STATISTICS: "false"}))
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / f"0.{chosen}").write_bytes(_PLACEHOLDER)
        try:
            register = getattr(context, f"register_{chosen}")
            register("feed", directory, schema=options.schema, **options.options)
            encoded = context.table("feed").execution_plan().to_bytes(context)
        except TypeError as error:
            raise UserError(f"cannot register feed {name!r} as {chosen}: {error}") from error
        except Exception as error:
            raise UserError(f"cannot register feed {name!r} as {chosen}: {clean_message(error)}") from error
    for node in walk(decode_plan(encoded)):
        if file_scan_conf(node) is not None:
            return encode(node)
    raise UserError(f"cannot register feed {name!r}: DataFusion does not scan {chosen} files as such")
