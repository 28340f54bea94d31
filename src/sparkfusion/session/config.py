"""`session.config`: one mapping over DataFusion's options and ours."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion import config
from sparkfusion.errors import UnknownSettingError, UserError, clean_message
from sparkfusion.exchange.urls import shown
from sparkfusion.session.upstream import guards_of, in_setting_order

ENTRIES_SCHEMA = pa.schema([("name", pa.string()), ("value", pa.string())])


_INFORMATION_SCHEMA = "datafusion.catalog.information_schema"


class SessionSettings(MutableMapping[str, str]):
    """Settings of one session by their full names; values are text, as `SHOW` prints them.

    Setting takes effect for every query planned afterwards. Deleting brings the default back.
    """

    def __init__(self, context: SessionContext, ours: config.Settings) -> None:
        self._context = context
        self.ours = ours

    def __getitem__(self, name: str) -> str:
        if name.startswith(config.PREFIX):
            return shown(show_value(self.ours[name]))
        options = self.datafusion_options()
        if name not in options:
            raise UnknownSettingError(f"unknown setting {name!r}", hint="SHOW ALL lists every setting")
        return options[name]

    def __setitem__(self, name: str, value: object) -> None:
        if name.startswith(config.PREFIX):
            self.ours.set(name, value)
            return
        if name == _INFORMATION_SCHEMA and str(value).lower() != "true":
            raise UserError(f"{name} must stay true", hint="settings travel to the tasks through it")
        text = str(value).lower() if isinstance(value, bool) else str(value).replace("'", "''")
        try:
            self._context.sql(f"SET {name} = '{text}'")
        except Exception as error:
            raise UserError(f"cannot set {name} to {value!r}: {clean_message(error)}") from None

    def __delitem__(self, name: str) -> None:
        if name.startswith(config.PREFIX):
            self.ours.reset(name)
            return
        try:
            self._context.sql(f"RESET {name}")
        except Exception as error:
            raise UserError(f"cannot reset {name}: {clean_message(error)}") from None
        for guarded, default in guards_of(name).items():
            self[guarded] = default

    def __iter__(self) -> Iterator[str]:
        yield from self.datafusion_options()
        yield from self.ours

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def datafusion_options(self) -> dict[str, str]:
        """Every `datafusion.*` option that has a value; this is what travels to workers."""
        frame = self._context.sql("select name, value from information_schema.df_settings")
        table = pa.Table.from_batches(frame.collect(), schema=frame.schema())
        names, values = table.column("name").to_pylist(), table.column("value").to_pylist()
        found = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        return in_setting_order(found)

    def items(self) -> ItemsView[str, str]:
        """Every setting and its value, read at once."""
        return (self.datafusion_options() | {name: self[name] for name in self.ours}).items()

    def as_table(self) -> pa.Table:
        rows = [{"name": name, "value": value} for name, value in self.items()]
        return pa.Table.from_pylist(rows, schema=ENTRIES_SCHEMA)


def show_value(value: int | bool | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
