"""`session.config`: one mapping over DataFusion's options and ours."""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, MutableMapping
from contextlib import contextmanager

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion import config
from sparkfusion.config.given_settings import CONNECT, DEFAULT, SET, GivenSetting
from sparkfusion.errors import UnknownSettingError, UserError, clean_message
from sparkfusion.session.sql_text import mask
from sparkfusion.session.statements import is_query
from sparkfusion.session.upstream import guards_of, in_setting_order
from sparkfusion.urls import show_url
from sparkfusion.worker.task_context import RUNTIME_PREFIX

ENTRIES_SCHEMA = pa.schema([(name, pa.string()) for name in ("name", "value", "description", "source")])
DEFAULT_CATALOG = "datafusion.catalog.default_catalog"
DEFAULT_SCHEMA = "datafusion.catalog.default_schema"
_INFORMATION_SCHEMA = "datafusion.catalog.information_schema"
_TIME_ZONE = re.compile(r"\s*set\s+time\s+zone\b", re.IGNORECASE)
_OF_DATAFUSION = "select name, value, description from information_schema.df_settings"


class SessionSettings(MutableMapping[str, str]):
    """Settings of one session by their full names; values are text, as `SHOW` prints them.

    Setting takes effect for every query planned afterwards. Deleting brings back the value that the session began with.
    """

    def __init__(self, context: SessionContext, ours: config.Settings) -> None:
        self._context = context
        self._change = object()  # stands for the last change of an option
        self._read: tuple[object, dict[str, str]] = None, {}  # DataFusion's options, and the last change before that
        self._elsewhere = False
        self._begun_with: dict[str, GivenSetting] = {}
        self._sources: dict[str, str] = {}
        self.ours = ours

    def __getitem__(self, name: str) -> str:
        if name.startswith(config.PREFIX):
            return show_url(show_value(self.ours[name]))
        options = self.datafusion_options()
        if name not in options:
            raise UnknownSettingError(f"unknown setting {name!r}", hint="SHOW ALL lists every setting")
        return options[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._assign(name, value)
        self._sources[name] = SET

    def begin_with(self, given: GivenSetting) -> None:
        """Take a value that was given before the session started. A later call for the same setting wins."""
        try:
            self._assign(given.name, given.value)
        except UserError as error:
            if given.source not in (CONNECT, DEFAULT):
                error.message = f"{error.message} (from {given.source})"
            raise
        self._begun_with[given.name] = given
        self._sources[given.name] = given.source

    @classmethod
    def check(cls, given: GivenSetting) -> None:
        """Raise if no session would take this value."""
        cls(SessionContext(SessionConfig().with_information_schema(enabled=True)), config.Settings()).begin_with(given)

    def source_of(self, name: str) -> str:
        """Where a value comes from: "default", the path of a file, a variable, a key of Spark, "connect" or "SET"."""
        return self._sources.get(name, DEFAULT)

    def _assign(self, name: str, value: object) -> None:
        if name.startswith(config.PREFIX):
            self.ours.set(name, value)
            return
        text = str(value).lower() if isinstance(value, bool) else str(value).replace("'", "''")
        try:
            with self.reread_after(f"SET {name}"):
                self._context.sql(f"SET {name} = '{text}'")
        except Exception as error:
            known = {str(row["name"]) for row in self._datafusion_rows()} | set(self.ours)
            hint = config.suggest(name, known) if name not in known else None
            raise UserError(f"cannot set {name} to {value!r}: {clean_message(error)}", hint=hint) from None

    def __delitem__(self, name: str) -> None:
        begun_with = self._begun_with.get(name)
        if begun_with is not None:
            self.begin_with(begun_with)
            return
        self._restore_default(name)
        self._sources.pop(name, None)

    def _restore_default(self, name: str) -> None:
        if name.startswith(config.PREFIX):
            self.ours.reset(name)
            return
        if name == _INFORMATION_SCHEMA:  # sessions begin with it on, DataFusion with it off
            self._assign(name, True)
            return
        try:
            with self.reread_after(f"RESET {name}"):
                self._context.sql(f"RESET {name}")
        except Exception as error:
            raise UserError(f"cannot reset {name}: {clean_message(error)}") from None
        for guarded, default in guards_of(name).items():
            self._assign(guarded, default)

    def __iter__(self) -> Iterator[str]:
        yield from self.datafusion_options()
        yield from self.ours

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def information_schema(self) -> bool:
        """Whether SQL may read `information_schema`."""
        return self[_INFORMATION_SCHEMA] == "true"

    def datafusion_options(self) -> dict[str, str]:
        """Every `datafusion.*` option that has a value; these are sent to workers."""
        change = self._change  # taken first: an option that another thread sets meanwhile is read the next time
        read_after, known = self._read
        if read_after is not change or self._elsewhere:
            rows = self._datafusion_rows()
            known = in_setting_order({str(row["name"]): text for row in rows if (text := row["value"]) is not None})
            self._read = change, known
        return dict(known)

    @contextmanager
    def reread_after(self, statement: str) -> Iterator[None]:
        """Read the options again after a statement that DataFusion runs, unless it is a query."""
        try:
            yield
        finally:
            if not is_query(statement):
                self._change = object()
            if _TIME_ZONE.match(mask(statement)):
                self._sources["datafusion.execution.time_zone"] = SET

    def expect_changes_elsewhere(self) -> None:
        """From now on read the options every time: other code has the context, and may set options there."""
        self._elsewhere = True

    def items(self) -> ItemsView[str, str]:
        """Every setting and its value, read at once."""
        return (self.datafusion_options() | {name: self[name] for name in self.ours}).items()

    def as_table(self) -> pa.Table:
        """Every setting with its value, what it means, and where its value comes from, by name; options of DataFusion
        without a value too."""
        ours: list[dict[str, str | None]] = [
            {"name": each.name, "value": self[each.name], "description": each.doc} for each in config.SETTINGS
        ]
        rows: list[dict[str, str | None]] = [*self._datafusion_rows(), *ours]
        rows = [row | {"source": self.source_of(str(row["name"]))} for row in rows]
        return pa.Table.from_pylist(rows, schema=ENTRIES_SCHEMA).sort_by("name")

    def _datafusion_rows(self) -> list[dict[str, str | None]]:
        """DataFusion shows its options in SQL only, and only while the information schema is on.

        While it is off, a copy of the configuration is used. Limits of the runtime (`datafusion.runtime.*`) are not
        part of a configuration, so they are not listed then.
        """
        try:
            dataframe = self._context.sql(_OF_DATAFUSION)
        except Exception:
            copied = SessionContext(self._context.copied_config().with_information_schema(enabled=True))
            listed = [
                row for row in copied.sql(_OF_DATAFUSION).to_pylist() if not row["name"].startswith(RUNTIME_PREFIX)
            ]
            return [row | {"value": "false"} if row["name"] == _INFORMATION_SCHEMA else row for row in listed]
        rows: list[dict[str, str | None]] = dataframe.to_pylist()
        return rows


def show_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
